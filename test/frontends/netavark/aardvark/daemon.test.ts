/** aardvark-dns cannot start, dies, does not end, or is in another namespace. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { type Machine, openMachine } from "../../../support/machine.ts";
import {
  AARDVARK,
  addNames,
  daemons,
  DIRECTORY,
  doNames,
  filesIn,
  jug,
  LOCK,
  lookUp,
  names,
  openBridged,
  openBridges,
  pidFile,
  removeNames,
  untilKnown,
  web,
} from "../../../support/netavark/names.ts";

const FAILED = "error while applying dns entries: aardvark-dns ";

/**
 * Traces the process, which then stops when it begins to end, until the tracer ends as well (ptrace(2)). A process without
 * processor time looks the same.
 */
const TRACER = `
  const { ptrace } = require("bun:ffi").dlopen("libc.so.6", {
    ptrace: { args: ["i64", "i32", "u64", "u64"], returns: "i64" },
  }).symbols;
  const SEIZE = 0x4206, TRACE_EXIT = 0x40;
  if (Number(ptrace(SEIZE, Number(process.argv[1]), 0, TRACE_EXIT)) !== 0) throw new Error("cannot trace");
  console.log("ready");
  Bun.sleepSync(1000);
`;

/** In the machine's /run. */
async function writeProgram(machine: Machine, script: string): Promise<string> {
  await machine.sh("cat >/run/aardvark-dns; chmod +x /run/aardvark-dns", { stdin: `#!/bin/sh\n${script}\n` });
  return "/run/aardvark-dns";
}

test("when it cannot start, its reason is told and nothing is left", async () => {
  await using machine = await openBridged();
  const reasons: [script: string, error: string][] = [
    ["echo ' no water ' >&2; exit 3", "failed to start: no water"],
    ["exit 3", "exited unexpectedly without error message"],
    ["kill -KILL $$", "exited unexpectedly without error message"],
    // Its first process has ended long before the child says why.
    [
      "(while kill -0 $$ 2>/dev/null; do :; done; sleep 0.1; echo Address already in use >&2) &\necho Error from child >&2; exit 1",
      "failed to start: Error from child\nAddress already in use",
    ],
  ];
  for (const [script, error] of reasons) {
    expect(await addNames(machine, { ...web, binary: await writeProgram(machine, script) })).toEqual([
      FAILED + error,
    ]);
    expect(await filesIn(machine)).toEqual(LOCK);
  }
  expect(await addNames(machine, { ...web, binary: "/run" })).toEqual([
    `${FAILED}failed to start: Failed to find executable /run: permission denied`,
  ]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("a container that cannot be served leaves the others their names", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  await machine.sh(`kill -KILL ${pidFile(machine)}`);
  const binary = await writeProgram(machine, "echo cannot bind >&2; exit 1"),
    spec = names("web9", "10.99.0.7", ["cup"]);
  const both = { ...spec, binary, networks: [...spec.networks, { ...spec.networks[0]!, name: "n9" }] };
  expect(await addNames(machine, both)).toEqual([`${FAILED}failed to start: cannot bind`]);
  expect((await filesIn(machine))["aardvark-dns/n1"]).toBe("10.55.0.1\nweb1 10.55.0.7  web\n");
  expect(await machine.sh(`ls ${DIRECTORY}`)).not.toContain("n9");
  expect(await addNames(machine, jug)).toEqual([true]);
  expect([await lookUp(machine, "web"), await lookUp(machine, "jug")]).toEqual([["10.55.0.7"], ["10.55.0.8"]]);
  await removeNames(machine, web, jug);
});

test("it was killed: the next container starts it again, and the last finds nothing to end", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  await machine.sh(`kill -KILL ${pidFile(machine)}`);
  expect(await addNames(machine, jug)).toEqual([true]);
  expect([await lookUp(machine, "web"), await lookUp(machine, "jug")]).toEqual([["10.55.0.7"], ["10.55.0.8"]]);
  await machine.sh(`kill -KILL ${pidFile(machine)}`);
  expect(await removeNames(machine, web, jug)).toEqual(["removed", "removed"]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("it was killed, but has not ended yet: the next container waits for that", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  const number = pidFile(machine), tracer = machine.start([process.execPath, "-e", TRACER, number]);
  await tracer.stdout.getReader().read();
  await machine.sh(`kill -KILL ${number}`);
  expect(await addNames(machine, jug)).toEqual([true]);
  expect(await tracer.exited).toBe(0);
  expect(pidFile(machine)).not.toBe(number);
  expect([await lookUp(machine, "web"), await lookUp(machine, "jug")]).toEqual([["10.55.0.7"], ["10.55.0.8"]]);
  await removeNames(machine, web, jug);
});

test("a program of another name, which the kernel cuts, is found again without the file of its number", async () => {
  await using machine = await openBridged();
  const binary = "/run/names-of-containers", [one, two] = [{ ...web, binary }, { ...jug, binary }];
  await machine.sh(`cp ${AARDVARK} ${binary}`);
  expect(await addNames(machine, one)).toEqual([true]);
  const pid = pidFile(machine);
  await machine.sh(`rm ${DIRECTORY}/aardvark.pid`);
  expect(await addNames(machine, two)).toEqual([true]);
  expect(pidFile(machine)).toBe(pid);
  await untilKnown(machine, "jug", ["10.55.0.8"]);
  expect(await removeNames(machine, one, two)).toEqual(["removed", "removed"]);
  expect(await lookUp(machine, "jug")).toEqual([]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("a torn or lying file of its number does not start a second", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  const [daemon] = await daemons(machine), number = pidFile(machine);
  for (const torn of [number.slice(0, 1), "", "x", `${number}0`, "-1", "1", undefined]) {
    const path = `${DIRECTORY}/aardvark.pid`;
    await machine.sh(torn === undefined ? `rm ${path}` : `printf %s '${torn}' >${path}`);
    expect(await addNames(machine, jug)).toEqual([true]);
    await untilKnown(machine, "jug", ["10.55.0.8"]);
    expect(await daemons(machine)).toEqual([daemon!]);
    expect(pidFile(machine)).toBe(number);
    await removeNames(machine, jug);
  }
  await machine.sh(`printf x >${DIRECTORY}/aardvark.pid`);
  await removeNames(machine, web);
  expect(await daemons(machine)).toEqual([]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("one of another machine, with the same path, is not touched", async () => {
  await using machine = await openMachine();
  await using other = await openMachine();
  for (const each of [machine, other]) await openBridges(each);
  expect(await addNames(other, web)).toEqual([true]);
  const theirs = await daemons(other);
  expect(await addNames(machine, jug)).toEqual([true]);
  expect(await lookUp(machine, "jug")).toEqual(["10.55.0.8"]);
  expect(await removeNames(machine, jug)).toEqual(["removed"]);
  await machine.sh(`printf ${theirs[0]} >${DIRECTORY}/aardvark.pid`);
  expect(await removeNames(machine, jug)).toEqual(["removed"]);
  expect([await daemons(machine), await daemons(other)]).toEqual([[], theirs]);
  expect(await lookUp(other, "web")).toEqual(["10.55.0.7"]);
  await removeNames(other, web);
});

test("one that does not end, or never gets ready, is ended", async () => {
  await using machine = await openBridged();
  await addNames(machine, web);
  const [stopped] = await daemons(machine);
  await machine.sh(`kill -STOP ${stopped}`);
  expect(await removeNames(machine, web)).toEqual(["removed"]);
  expect(await daemons(machine)).toEqual([]);
  expect(await filesIn(machine)).toEqual(LOCK);
  const deaf = machine.start([
    "sh",
    "-c",
    `cp /bin/bash /run/aardvark-dns; exec /run/aardvark-dns -c 'echo ready; read _' -- --config ${DIRECTORY}`,
  ]);
  await deaf.stdout.getReader().read();
  expect(await addNames(machine, web)).toEqual([true]);
  await deaf.exited;
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  await removeNames(machine, web);
});

test("it runs in a namespace that is not the host's any more", async () => {
  await using machine = await openBridged();
  const before = await machine.container("before");
  await machine.sh(
    "ip link set lo up; ip link add br0 type bridge; ip addr add 10.55.0.1/24 dev br0; ip link set br0 up",
    {
      in: before,
    },
  );
  const { outcomes } = await doNames(machine, [{ verb: "add", spec: web }], { in: before });
  expect(outcomes).toEqual([true]);
  const [old] = await daemons(machine);
  expect(await lookUp(machine, "web")).toEqual([]);
  expect(await addNames(machine, jug)).toEqual([true]);
  expect([await lookUp(machine, "web"), await lookUp(machine, "jug")]).toEqual([["10.55.0.7"], ["10.55.0.8"]]);
  const now = await daemons(machine);
  expect(now).toHaveLength(1);
  expect(now).not.toContain(old!);
  await removeNames(machine, web, jug);
});

test("where systemd runs, it starts in a scope of its own", async () => {
  await using machine = await openBridged();
  await machine.sh(
    "mkdir -p /run/systemd/system /run/bin; cat >/run/bin/systemd-run; chmod +x /run/bin/systemd-run",
    {
      stdin:
        '#!/bin/sh\necho "$RUST_LOG $*" >>/run/called\nwhile case $1 in -*) :;; *) false;; esac do shift; done\nexec "$@"\n',
    },
  );
  const PATH = "/run/bin:/usr/sbin:/usr/bin:/sbin:/bin", run = `${AARDVARK} --config ${DIRECTORY} -p 53 run`;
  for (const isRootless of [false, true]) {
    const spec = { ...web, isRootless };
    const steps = [{ verb: "add", spec }, { verb: "remove", spec }] as const;
    const { outcomes } = await doNames(machine, [...steps], { env: { PATH, RUST_LOG: "netavark=info" } });
    expect(outcomes).toEqual([true, "removed"]);
  }
  expect(await machine.sh("cat /run/called")).toBe(
    `INFO -q --scope ${run}\nINFO -q --scope --user ${run}\n`,
  );
  // Without it in PATH, it is started as everywhere.
  const programs = mkdtempSync("/tmp/patchbay-netavark-path-");
  symlinkSync(Bun.which("nsenter")!, `${programs}/nsenter`);
  const steps = [{ verb: "add", spec: web }, { verb: "remove", spec: web }] as const;
  const { outcomes } = await doNames(machine, [...steps], { env: { PATH: programs } });
  expect(outcomes).toEqual([true, "removed"]);
  rmSync(programs, { recursive: true });
});
