/**
 * What takes the place of the resident's file. It becomes what root or its own user has put there, and nothing else; what
 * it has looked at is what it becomes.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { openMachine } from "../../support/machine.ts";
import { needs } from "../../support/needs.ts";
import { writeOtherBuild } from "../../support/other-build.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { BEGUN, isWaiting, startResident } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

needs("gcc");

const folder = mkdtempSync(`${tmpdir()}/own-file-`);
afterAll(() => rmSync(folder, { recursive: true }));

/** The program's directory, the program, what others put there, the other one's place, and what ran. */
const D = `${folder}/bin`, F = `${D}/own`, P = `${folder}/other`, E = `${folder}/elsewhere`, RAN = `${folder}/ran`;

/** Writes down how it is called. Asked for its version, it lets another take its place. */
function compile(path: string, name: string): void {
  writeFileSync(
    `${folder}/${name}.c`,
    `#include <stdio.h>
    #include <string.h>
    int main(int count, char **words) {
      FILE *ran = fopen("${RAN}", "a");
      fprintf(ran, "${name} %s\\n", words[1]);
      fclose(ran);
      if (strcmp(words[1], "version") == 0) rename("${folder}/exchanged", "${F}");
      return 0;
    }`,
  );
  const { exitCode, stderr } = Bun.spawnSync(["x86_64-linux-gnu-gcc", "-o", path, `${folder}/${name}.c`]);
  if (exitCode !== 0) throw new Error(stderr.toString());
}

beforeAll(() => {
  for (const each of [D, E]) mkdirSync(each);
  copyFileSync(PATCHBAY, F);
  compile(P, "judged");
  compile(`${folder}/exchanged`, "exchanged");
});

/** A shell's script, and what of all is to blame. */
const ways: [prepare: string, blamed: string, why: string][] = [
  ["chown 1001 $P; mv $P $F", F, "it belongs to user 1001 (chown 0 "],
  ["chmod g+w $P; mv $P $F", F, "its group may write to it (chmod g-w "],
  ["chmod o+w $P; mv $P $F", F, "everybody may write to it (chmod o-w "],
  ["chmod u+s,o+w $P; mv $P $F", F, "everybody may write to it (chmod o-w "],
  ["chown 1001 $D; mv $P $F", D, "it belongs to user 1001 (chown 0 "],
  ["chmod g+w $D; mv $P $F", D, "its group may write to it (chmod g-w "],
  ["chmod 777 $D; mv $P $F", D, "everybody may write to it (chmod o-w "],
  ["mv $P $E/file; chown 1001 $E/file; ln -s $E/file $F.new; mv $F.new $F", `${E}/file`, "it belongs to user 1001 ("],
  ["mv $P $E/file; chown 1001 $E; ln -s $E/file $F.new; mv $F.new $F", E, "it belongs to user 1001 ("],
  ["mkfifo $D/new; mv $D/new $F", "", "permission denied"],
  ["mknod $D/new c 1 3; mv $D/new $F", "", "permission denied"],
  ["mkdir $D/new; mv -T --exchange $D/new $F 2>/dev/null || { rm $F; mv $D/new $F; }", "", "permission denied"],
  ["chmod 1777 $D; mv $P $F", D, "everybody may write to it (chmod o-w "],
];

test("the resident stays what it is, says why once, and goes on when that is mended", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine, 1, F);
  const before = await untilServed(machine, F);
  let said = "";
  const listening = (async () => {
    for await (const chunk of resident.stderr) said += new TextDecoder().decode(chunk);
  })();
  const script = (text: string) => machine.sh(`D=${D}; F=${F}; P=${folder}/new; E=${E}; ${text}`);
  await script(`ln $F ${folder}/kept`);
  await untilTrue(() => said, (all) => BEGUN.test(all));
  await script("rm $F");
  expect((await statusOf(machine, `${folder}/kept`)).refusedUpgrade).toBeUndefined();
  await script(`ln ${folder}/kept $F`);
  const descriptors = () => readdirSync(`/proc/${resident.pid}/fd`).length;
  const texts = [said], open = descriptors();
  for (const [prepare, blamed, why] of ways) {
    // The file that runs comes back before anything else changes.
    await script(`
      rm -rf $F; ln ${folder}/kept $F
      chown 0 $D $E; chmod 755 $D $E; rm -rf $E/* $P; cp ${P} $P
      ${prepare}`);
    const text = blamed === "" ? why : `a resident does not execute unasked: ${blamed}: ${why}`;
    await untilTrue(() => said, (all) => all.slice(texts.join("").length).includes(text));
    texts.push(said.slice(texts.join("").length));
    expect((await statusOf(machine, `${folder}/kept`)).refusedUpgrade).toContain(text);
    await script("touch $D/something; rm $D/something");
    expect({ prepare, ran: existsSync(RAN) }).toEqual({ prepare, ran: false });
  }
  for (const text of texts) expect(text.split("\n").length).toBe(2);
  await untilTrue(() => isWaiting(resident.pid), Boolean);
  expect(descriptors()).toBe(open);
  expect((await statusOf(machine)).pid).toBe(before.pid);
  expect((await statusOf(machine)).workers).toEqual(
    before.workers.map((worker) => expect.objectContaining({ pid: worker.pid })),
  );
  const { stdout } = await machine.run([`${folder}/kept`, "serve", "--status"]);
  expect(stdout).toContain(`it has not been upgraded: ${F} was replaced by a file that a resident does not execute`);
  // What it was asked for is what it becomes, although another has its place by then.
  await script("chmod 755 $D");
  expect(await resident.exited).toBe(0);
  await listening;
  expect(readFileSync(RAN, "utf8")).toBe("judged version\njudged serve\n");
  expect(said).toBe(texts.join(""));
});

test("a file that is still being copied is reported once, and executed when it is complete", async () => {
  await using machine = await openMachine();
  const folder = mkdtempSync(`${tmpdir()}/copied-`), own = `${folder}/own`, next = `${folder}/next`;
  copyFileSync(PATCHBAY, own);
  const build = readFileSync(writeOtherBuild(next, 1)), half = build.length >> 1;
  const resident = await startResident(machine, 1, own);
  let said = "";
  const listening = (async () => {
    for await (const chunk of resident.stderr) said += new TextDecoder().decode(chunk);
  })();
  await untilServed(machine, own);
  truncateSync(next, half);
  const copying = openSync(next, "a");
  renameSync(next, own);
  const busy = /^.* was replaced by a file that does not run: .*text file busy.*$/gm;
  await untilTrue(() => said, (all) => busy.test(all));
  for (let at = half; at < build.length; at += half >> 4) {
    writeSync(copying, build.subarray(at, at + (half >> 4)));
    // Each is a reason to look again.
    writeFileSync(`${folder}/something`, "");
    await untilTrue(() => isWaiting(resident.pid), Boolean);
  }
  closeSync(copying);
  await untilServed(machine, own);
  resident.kill("SIGTERM");
  await resident.exited;
  await listening;
  expect(said.match(busy)).toHaveLength(1);
  rmSync(folder, { recursive: true });
});
