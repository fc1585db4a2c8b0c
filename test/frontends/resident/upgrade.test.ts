/**
 * Another program takes the place of the resident's file, another worker that of one that has grown: no call fails, and
 * nothing is left.
 */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "bun:test";
import { readTextFile } from "../../../src/ffi/files.ts";
import { keepCalling } from "../../support/keep-calling.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { writeOtherBuild } from "../../support/other-build.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { childrenOf, startResident, terminate } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const conf = { type: "bridge", isGateway: true, ipMasq: true, ipam };

const folder = mkdtempSync(`${tmpdir()}/service-`);
afterAll(() => rmSync(folder, { recursive: true }));

test("an upgrade: the resident goes on as the new file, as the same process, and no call fails", async () => {
  await using machine = await openMachine();
  const own = `${folder}/own`;
  copyFileSync(PATCHBAY, own);
  const resident = machine.start([own, "serve", "--workers=2", "--rehearsals=0"]);
  let said = "";
  const listening = (async () => {
    for await (const chunk of resident.stderr) said += new TextDecoder().decode(chunk);
  })();
  await untilServed(machine, own);
  const bin = "/run/plugins", container = await machine.container("c1");
  await machine.sh(`mkdir ${bin}; ln -s ${own} ${bin}/bridge; ln -s ${own} ${bin}/host-local`);
  const call = { plugin: "bridge", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const round = async () => {
    for (const command of ["ADD", "DEL"]) {
      const { code, stdout, stderr } = await cni(machine, bin, { ...call, command });
      expect([command, code, stderr]).toEqual([command, 0, command === "ADD" || stdout === "" ? "" : stdout]);
    }
  };
  await round();
  const moment = await quietMoment(machine);
  const calling = keepCalling(round);
  const open: number[] = [];
  for (const number of [1, 2, 3]) {
    const build = writeOtherBuild(`${folder}/build-${number}`, number);
    // Another build declines, and is declined.
    expect((await statusOf(machine, build)).build).toBe("another");
    await machine.sh(`mv ${build} ${own}`);
    expect((await untilServed(machine, own)).pid).toBe(resident.pid);
    const all = [resident.pid, ...childrenOf(resident.pid)];
    const names = all.map((pid) => readTextFile(`/proc/${pid}/comm`)).filter((name) => name !== undefined);
    expect(new Set(names)).toEqual(new Set(["patchbay\n"]));
    await untilTrue(() => readFileSync(`/proc/${resident.pid}/wchan`, "utf8"), (place) => place.includes("poll"));
    open.push(readdirSync(`/proc/${resident.pid}/fd`).length);
  }
  expect(new Set(open).size).toBe(1);
  expect(await calling.stop()).toBeGreaterThan(0);
  // What does not run takes nobody's place.
  const before = await statusOf(machine);
  for (
    const bad of [
      "head -c 50000 FROM >NEW; chmod +x NEW",
      "printf '#!/bin/sh\\nexit 3\\n' >NEW; chmod +x NEW",
      "echo >NEW",
    ]
  ) {
    await machine.sh(bad.replaceAll("NEW", `${folder}/new`).replace("FROM", PATCHBAY) + `; mv ${folder}/new ${own}`);
    const says = `${own} was replaced by a file that does not run: `;
    // It names the file that people know.
    expect(await untilTrue(() => said, (text) => text.includes(says))).not.toContain("/proc/");
    said = "";
    const now = await statusOf(machine);
    expect(now.workers.map(({ pid }) => pid)).toEqual(
      before.workers.map(({ pid }) => pid),
    );
  }
  // `install` replaces the file in the same way.
  await machine.sh(
    `mkdir /run/cni; ${PATCHBAY} install /run/cni >/dev/null; mv /run/cni/patchbay ${own}; rm -r /run/cni`,
  );
  expect((await untilServed(machine)).pid).toBe(resident.pid);
  await machine.sh(`rm ${own}`);
  expect(await resident.exited).toBe(0);
  await listening;
  expect(said).toContain(`${own} is gone; the resident ends`);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a worker that has grown makes room for a new one between two calls", async () => {
  await using machine = await openMachine();
  const resident = await startResident(machine, 1);
  const [first] = (await untilServed(machine)).workers;
  const bridge = `${patchbayPlugins()}/bridge`;
  // 40 MB of stdin make it larger than 160 MiB for a while; it looks after 256 calls.
  const large = { stdin: `{"a":"${"x".repeat(40_000_000)}"}`, env: { CNI_COMMAND: "STATUS", CNI_PATH: "/nowhere" } };
  await machine.sh(`i=0; while [ $i -lt 240 ]; do ${PATCHBAY} version >/dev/null; i=$((i+1)); done`);
  const isOther = () =>
    statusOf(machine).then(({ workers }) => workers[0] !== undefined && workers[0].pid !== first!.pid);
  for (let count = 0; count < 40 && !await isOther(); count++) {
    expect((await machine.run([bridge], large)).code).toBe(1);
  }
  const { workers, workersReplaced } = await untilServed(machine);
  expect(workers[0]!.pid).not.toBe(first!.pid);
  expect(workersReplaced).toBeGreaterThan(0);
  await terminate(resident);
});
