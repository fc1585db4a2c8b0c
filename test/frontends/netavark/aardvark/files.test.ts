/** The files of aardvark-dns: torn files, a full disk, killed writers, and many writers at once. */
import { expect, test } from "bun:test";
import { isAsleep } from "../../../support/asleep.ts";
import {
  addNames,
  daemons,
  DIRECTORY,
  doNames,
  filesIn,
  jug,
  LOCK,
  lookUp,
  names,
  ND,
  openBridged,
  removeNames,
  untilKnown,
  web,
} from "../../../support/netavark/names.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { random } from "../../../support/random.ts";

test("lines and heads that a crash left half written do not take the others' names", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  await machine.sh(`printf 'web3 10.55' >>${DIRECTORY}/n1; printf x >${ND}/aardvark.new`);
  expect(await addNames(machine, jug)).toEqual([true]);
  await untilKnown(machine, "jug", ["10.55.0.8"]);
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  expect(await filesIn(machine)).toEqual({
    ...LOCK,
    "aardvark-dns/aardvark.pid": "a number",
    "aardvark-dns/n1": "10.55.0.1\nweb1 10.55.0.7  web\nweb2 10.55.0.8  jug\n",
  });
  await removeNames(machine, web);
  await machine.sh(`printf '10.5' >${DIRECTORY}/n1`);
  expect(await addNames(machine, jug)).toEqual([true]);
  await untilKnown(machine, "jug", ["10.55.0.8"]);
  await removeNames(machine, jug);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("a full disk: nothing new, nothing lost, and everything can go", async () => {
  await using machine = await openBridged();
  await machine.sh(`mount -t tmpfs -o size=64k tmpfs ${ND}`);
  const long = (id: string) => names(id, "10.55.0.9", Array.from({ length: 900 }, (_, index) => `${id}-${index}`));
  const [one, two, three] = ["one", "two", "three"].map(long);
  expect(await addNames(machine, web, one!, two!)).toEqual([true, true, true]);
  await machine.sh(`head -c 64k /dev/zero >${ND}/ballast || true`);
  const before = await filesIn(machine);
  expect(await addNames(machine, three!)).toEqual([
    "error while applying dns entries: IO error: No space left on device (os error 28)",
  ]);
  expect(await filesIn(machine)).toEqual(before);
  expect(await removeNames(machine, one!, web)).toEqual(["removed", "removed"]);
  await untilKnown(machine, "two-7", ["10.55.0.9"]);
  expect(await lookUp(machine, "web")).toEqual([]);
  expect(await removeNames(machine, two!)).toEqual(["removed"]);
  await machine.sh(`rm ${ND}/ballast`);
  expect(await filesIn(machine)).toEqual(LOCK);
  expect(await daemons(machine)).toEqual([]);
});

test("killed at any moment, whoever comes next has names, and nothing stays", async () => {
  await using machine = await openBridged();
  for (let round = 0; round < 16; round++) {
    for (const verb of ["add", "remove"] as const) {
      const adding = doNames(machine, [{ verb, spec: web }], { killedAfterMs: 20 + random() * 60 });
      await adding.catch(() => undefined);
      expect(await addNames(machine, jug)).toEqual([true]);
      await untilKnown(machine, "jug", ["10.55.0.8"]);
      expect(await daemons(machine)).toHaveLength(1);
      if (verb === "add") await addNames(machine, web);
    }
    expect(await removeNames(machine, web, jug)).toEqual(["removed", "removed"]);
    expect(await daemons(machine)).toEqual([]);
    expect(await filesIn(machine)).toEqual(LOCK);
  }
});

test("many at once: one aardvark-dns, with everybody's names, and none in the end", async () => {
  await using machine = await openBridged(2);
  const all = Array.from({ length: 16 }, (_, index) => {
    const net = index % 2;
    const network = { name: `n${net}`, gateways: [`10.5${5 + net}.0.1`] };
    return names(`web${index}`, `10.5${5 + net}.0.${10 + index}`, [`cup${index}`], { network });
  });
  for (const round of [1, 2]) {
    expect(await Promise.all(all.map((spec) => addNames(machine, spec)))).toEqual(all.map(() => [true]));
    expect({ round, daemons: (await daemons(machine)).length }).toEqual({ round, daemons: 1 });
    for (const [index, { networks: [network] }] of all.entries()) {
      await untilKnown(machine, `cup${index}`, [...network!.addresses4], network!.gateways[0]);
    }
    expect(await Promise.all(all.map((spec) => removeNames(machine, spec)))).toEqual(all.map(() => ["removed"]));
    expect(await daemons(machine)).toEqual([]);
    expect(await filesIn(machine)).toEqual(LOCK);
  }
});

test("coming and going at once: whoever is there has names", async () => {
  await using machine = await openBridged();
  const life = async (index: number) => {
    const spec = names(`web${index}`, `10.55.0.${10 + index}`, [`cup${index}`]);
    for (let round = 0; round < 6; round++) {
      const { outcomes } = await doNames(machine, [{ verb: "add", spec }, { verb: "remove", spec }, {
        verb: "add",
        spec,
      }]);
      expect(outcomes).toEqual([true, "removed", true]);
      await untilKnown(machine, `cup${index}`, [`10.55.0.${10 + index}`]);
      expect(await removeNames(machine, spec)).toEqual(["removed"]);
    }
  };
  await Promise.all([0, 1].map(life));
  expect(await daemons(machine)).toEqual([]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

// netavark makes it so with the umasks 022 and 002.
test.each(["644", "664"])("netavark's own lock is respected, with mode %s", async (mode) => {
  await using machine = await openBridged();
  await machine.sh(`install -m ${mode} /dev/null ${ND}/aardvark.lock`);
  const holder = machine.start(["flock", `${ND}/aardvark.lock`, "sh", "-c", "echo held; cat"]);
  await holder.stdout.getReader().read();
  let isDone = false;
  const adding = addNames(machine, web).finally(() => isDone = true);
  const isWaiting = async () => {
    const { stdout } = await machine.run(["find", "/proc", "-maxdepth", "3", "-lname", `${ND}/aardvark.lock`]);
    return stdout.split("\n").some((path) => path !== "" && isAsleep(Number(path.split("/")[2])));
  };
  await untilTrue(async () => isDone || await isWaiting(), Boolean);
  expect(await filesIn(machine)).toEqual(LOCK);
  await holder.stdin.end();
  expect(await adding).toEqual([true]);
  await removeNames(machine, web);
  await holder.exited;
});
