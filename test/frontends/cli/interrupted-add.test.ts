/**
 * SIGINT and SIGTERM while `patchbay add` or `hook add` runs, in its own work and wherever it waits for somebody else: it
 * ends with status 0 and everything attached, or with 128 + signal and nothing left. The signal ends other commands.
 *
 * Longer than 300 lines: one machine and its plugins for everything that an ADD may wait for.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Subprocess } from "bun";
import { readTextFile } from "../../../src/ffi/files.ts";
import { serverBehindBridge } from "../../support/dhcp/link.ts";
import { startService } from "../../support/dhcp/service.ts";
import { CONFIGS, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each call is one process, which the signals go to.
delete process.env.PATCHBAY_TEST_RESIDENT;

let machine: Machine, moment: Moment;

const env = [`NETCONFPATH=${CONFIGS}`, "CNI_PATH=/run/plugins"];
const IGNORED = /last_reserved_ip|file \/run\/(bundles|plugins|networks|fifos)\//;
const left = () => leftSince(moment, machine, IGNORED);

const start = (words: readonly string[], before: readonly string[] = []): Subprocess<"pipe", "pipe", "pipe"> =>
  machine.start(["env", ...env, ...before, PATCHBAY, ...words]);
async function outcomeOf(child: Subprocess<"pipe", "pipe", "pipe">) {
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code: child.exitCode, signal: child.signalCode, stdout, stderr };
}
const taken = (command: string, name: "SIGINT" | "SIGTERM") => ({
  code: name === "SIGINT" ? 130 : 143,
  signal: null,
  stdout: "",
  stderr: `${command}: interrupted by ${name}; what it had made is taken back\n`,
});
const asking = "patchbay: waiting for /run/plugins/waiting, which one more signal ends\n";
const exists = async (path: string) => (await machine.run(["test", "-e", path])).code === 0;
const until = (path: string) => untilTrue(() => exists(path), Boolean);

/**
 * Says in /run/plugins what it begins and ends. ADD ends with a file `release`, as do all that it has started; DEL with
 * `forgive`, or at once and badly with `refuse`.
 */
const waiting = `#!/bin/sh
cat >/run/plugins/stdin
case $CNI_COMMAND in
ADD)
  (: >/run/plugins/beside; sleep infinity) &
  : >/run/plugins/added
  while [ ! -e /run/plugins/release ]; do sleep 0.01; done; kill $! ;;
DEL)
  : >/run/plugins/deleting
  [ ! -e /run/plugins/refuse ] || exit 3
  while [ ! -e /run/plugins/forgive ]; do sleep 0.01; done
  : >/run/plugins/deleted ;;
esac
echo '{"cniVersion":"1.1.0"}'
`;
const forget = () => machine.sh("cd /run/plugins; rm -f beside added release deleting forgive refuse deleted");

beforeAll(async () => {
  machine = await openMachine();
  await machine.container("c1");
  const bridge = {
    type: "bridge",
    bridge: "br0",
    isGateway: true,
    ipMasq: true,
    ipMasqBackend: "nftables",
    ipam: { type: "host-local", subnet: "10.9.0.0/24" },
  };
  const other = (name: string, subnet: string) => ({ ...bridge, bridge: name, ipam: { ...bridge.ipam, subnet } });
  const portmap = { type: "portmap", backend: "iptables", capabilities: { portMappings: true } };
  await machine.sh("mkdir /run/plugins; cat >/run/plugins/waiting; chmod +x /run/plugins/waiting", {
    stdin: waiting,
  });
  await machine.sh(`cd /run/plugins; for name in bridge host-local portmap tuning; do ln -s ${PATCHBAY} $name; done`);
  await writeNetwork(machine, "own", [bridge, portmap, { type: "tuning", mtu: 1400 }]);
  await writeNetwork(machine, "mixed", [other("br2", "10.7.0.0/24"), { type: "waiting" }]);
  const search = Array.from({ length: 400 }, (_, index) => `long-name-${index}.example`);
  await machine.sh("cat >/run/plugins/naming; chmod +x /run/plugins/naming", {
    stdin: `#!/bin/sh\necho '${JSON.stringify({ cniVersion: "1.1.0", dns: { search } })}'\n`,
  });
  await writeNetwork(machine, "long", [other("br3", "10.6.0.0/24"), { type: "naming" }]);
  await writeNetwork(machine, "back", [other("br1", "10.8.0.0/24")]);
  await machine.sh("touch /run/plugins/release /run/plugins/forgive");
  for (const network of ["own", "mixed", "long", "back"]) {
    for (const verb of ["add", "del"]) {
      const ports = verb === "add" && network === "own" ? ["--ports", "8080:80"] : [];
      expect(await outcomeOf(start([verb, network, "c1", ...ports]))).toMatchObject({ code: 0 });
    }
  }
  moment = await quietMoment(machine);
});
afterAll(() => machine[Symbol.asyncDispose]());

test("at any moment of a chain of our own plugins", async () => {
  const add = ["add", "own", "c1", "--ports", "8080:80"], log = "/run/plugins/calls";
  const kinds = ["write", "sendto", "rename", "openat", "close"];
  expect(await outcomeOf(start(add, ["strace", "-qq", "-e", `trace=${kinds.join(",")}`, "-o", log])))
    .toMatchObject({ code: 0 });
  expect(await outcomeOf(start(["del", "own", "c1"]))).toMatchObject({ code: 0 });
  const lines = (await machine.sh(`cat ${log}; rm ${log}`)).split("\n");
  const ends = { attached: 0, nothing: 0 };
  for (const [index, kind] of kinds.entries()) {
    const count = lines.filter((line) => line.startsWith(`${kind}(`)).length, step = Math.ceil(count / 8);
    for (let nth = 1; nth <= count; nth += step) {
      const name = (index + nth) % 2 === 0 ? "SIGINT" : "SIGTERM";
      const injected = `inject=${kind}:signal=${name.slice(3)}:when=${nth}`;
      const { code, signal, stderr } = await outcomeOf(
        start(add, ["strace", "-qq", "-o", "/dev/null", "-e", `trace=${kind}`, "-e", injected]),
      );
      const point = { kind, nth, name, signal, stderr };
      if (code === 0) {
        ends.attached++;
        expect(await outcomeOf(start(["check", "own", "c1"]))).toMatchObject({ code: 0 });
        expect(await outcomeOf(start(["del", "own", "c1"]))).toMatchObject({ code: 0 });
      } else {
        ends.nothing++;
        expect({ ...point, code }).toMatchObject({
          code: taken("", name).code,
          stderr: taken("patchbay add", name).stderr,
        });
      }
      expect({ point, left: await left() }).toEqual({ point, left: [] });
    }
  }
  expect(ends.nothing).toBeGreaterThan(10);
});

test("while a plugin of others runs: it is killed, and the DEL that takes back goes on through another signal", async () => {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    await forget();
    const form = name === "SIGINT" ? ["add"] : ["-i", "eth0", "add"];
    const child = start([...form, "mixed", "c1"], ["setsid"]), outcome = outcomeOf(child);
    await until("/run/plugins/added");
    await until("/run/plugins/beside");
    child.kill(name);
    await until("/run/plugins/deleting");
    // As a terminal does it, to the group.
    process.kill(-child.pid, name);
    await untilTrue(() => hasRead(child.pid, name), Boolean);
    await machine.sh("touch /run/plugins/forgive");
    const { stderr, ...rest } = taken("patchbay add", name);
    expect(await outcome).toEqual({ ...rest, stderr: asking + stderr });
    expect(await exists("/run/plugins/deleted")).toBe(true);
    // Nor does what it had started.
    expect(await machine.run(["pgrep", "-x", "-g", String(child.pid), "sleep"])).toMatchObject({ code: 1 });
    expect(await left()).toEqual([]);
  }
});

test("a third signal ends the DEL that takes back, and what is not taken back is said", async () => {
  for (const command of ["add", "hook"] as const) {
    await forget();
    await using web = await startHooked(machine, "web");
    const child = start(command === "add" ? ["add", "mixed", "c1"] : ["hook", "add", "mixed"], ["setsid"]);
    const outcome = outcomeOf(child);
    child.stdin.write(JSON.stringify(web.state()));
    await child.stdin.end();
    await until("/run/plugins/added");
    child.kill("SIGTERM");
    await until("/run/plugins/deleting");
    for (let more = 0; more < 2; more++) {
      process.kill(-child.pid, "SIGTERM");
      await untilTrue(() => hasRead(child.pid, "SIGTERM"), Boolean);
    }
    const { code, stderr } = await outcome;
    expect({ code, stderr }).toEqual({
      code: 143,
      stderr: `${asking}patchbay ${command}: interrupted by SIGTERM; taking it back failed: ` +
        'plugin type="waiting" failed (delete): netplugin failed with no error message: ' +
        "/run/plugins/waiting had not ended, and was killed because signals came again and again\n",
    });
    expect(await exists("/run/plugins/deleted")).toBe(false);
    await web.end();
    expect(await left()).toEqual([]);
  }
});

/** Whether the process has none of the signals before it any more: proc_pid_status(5). */
function hasRead(pid: number, name: "SIGINT" | "SIGTERM"): boolean {
  const status = readTextFile(`/proc/${pid}/status`) ?? "", bit = name === "SIGINT" ? 1n << 1n : 1n << 14n;
  return [...status.matchAll(/^(?:SigPnd|ShdPnd):\t(.*)$/gm)].every(([, set]) => (BigInt(`0x${set}`) & bit) === 0n);
}

const idle: [what: string, words: string[]][] = [
  ["hook add waits for its stdin", ["hook", "add", "own"]],
  ["hook del waits for its stdin", ["hook", "del", "add"]],
  ["hook del after its options", ["--ports=1:1", "hook", "del", "add"]],
];

test.each(idle)("a command that has made nothing: %s", async (_what, words) => {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    const child = start(words), outcome = outcomeOf(child);
    const place = () => readTextFile(`/proc/${child.pid}/wchan`) ?? "";
    await untilTrue(place, (text) => /poll|unix_stream|pipe/.test(text));
    child.kill(name);
    const { code, signal } = await outcome;
    expect({ code, signal }).toEqual(
      words[1] === "add" ? { code: taken("", name).code, signal: null } : { code: null, signal: name },
    );
  }
  expect(await left()).toEqual([]);
});

test("a configuration that is a pipe is refused", async () => {
  await machine.sh("mkdir -p /run/fifos; rm -f /run/fifos/*; mkfifo /run/fifos/add.conflist");
  const { code, stderr } = await outcomeOf(start(["add", "own", "c1"], ["NETCONFPATH=/run/fifos"]));
  expect(code).toBe(1);
  expect(stderr).toContain("/run/fifos/add.conflist: not a regular file");
});

test("while another operation has the container", async () => {
  await forget();
  const first = start(["add", "mixed", "c1"]), outcome = outcomeOf(first);
  await until("/run/plugins/added");
  const second = start(["add", "back", "c1", "-i", "eth1"]), stderr = second.stderr.getReader();
  expect(new TextDecoder().decode((await stderr.read()).value)).toContain("waiting for another operation");
  second.kill("SIGINT");
  await second.exited;
  expect(second.exitCode).toBe(130);
  await machine.sh("touch /run/plugins/release /run/plugins/forgive");
  expect(await outcome).toMatchObject({ code: 0 });
  expect(await outcomeOf(start(["del", "mixed", "c1"]))).toMatchObject({ code: 0 });
  expect(await left()).toEqual([]);
});

const unread: [what: string, words: string[], free: number, isRefused: boolean][] = [
  ["add", ["add", "own", "c1"], 0, false],
  ["hook add --json", ["hook", "add", "--json", "own"], 0, false],
  ["a long result, of which a part is read", ["add", "long", "c1"], 4096, false],
  ["a plugin of others refuses to take it back", ["add", "mixed", "c1"], 0, true],
  ["a plugin of others refuses to take the hook's back", ["hook", "add", "--json", "mixed"], 0, true],
];

test.each(unread)("while nobody reads the result: %s", async (_what, words, free, isRefused) => {
  await forget();
  await using web = await startHooked(machine, "web");
  await machine.sh("mkfifo /run/plugins/full; touch /run/plugins/release /run/plugins/forgive");
  const full = `exec 3<>/run/plugins/full; head -c ${65536 - free} /dev/zero >&3; exec "$@" >&3`;
  const child = start(words, ["sh", "-c", full, "sh"]), outcome = outcomeOf(child);
  child.stdin.write(JSON.stringify(web.state()));
  await child.stdin.end();
  const network = words.at(-1) === "c1" ? words[1]! : words.at(-1)!;
  await untilTrue(() => machine.sh("ls /var/lib/cni/results || true"), (names) => names.includes(`${network}-`));
  if (isRefused) await machine.sh("touch /run/plugins/refuse");
  child.kill("SIGTERM");
  const { code, stderr } = await outcome;
  expect(code).toBe(143);
  if (isRefused) expect(stderr).toMatch(/interrupted by SIGTERM; taking it back failed: .*exit status 3\n$/);
  else expect(stderr).toEndWith("interrupted by SIGTERM; what it had made is taken back\n");
  await machine.sh("rm -f /run/plugins/full /run/plugins/refuse");
  if (isRefused) {
    const again = start(words[0] === "hook" ? ["hook", "del"] : ["del", network, "c1"]), ended = outcomeOf(again);
    again.stdin.write(JSON.stringify(web.state()));
    await again.stdin.end();
    expect(await ended).toMatchObject({ code: 0 });
  }
  await web.end();
  expect(await left()).toEqual([]);
});

test("a signal that the caller ignores interrupts nothing", async () => {
  await forget();
  const child = start(["add", "mixed", "c1"], ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]),
    outcome = outcomeOf(child);
  await until("/run/plugins/added");
  child.kill("SIGINT");
  await machine.sh("touch /run/plugins/release /run/plugins/forgive");
  expect(await outcome).toMatchObject({ code: 0, stderr: "" });
  expect(await outcomeOf(start(["del", "mixed", "c1"]))).toMatchObject({ code: 0 });
  expect(await left()).toEqual([]);
});

test("hook add: all networks of the container", async () => {
  await forget();
  await using web = await startHooked(machine, "web");
  const child = start(["hook", "add", "back", "mixed"]), outcome = outcomeOf(child);
  child.stdin.write(JSON.stringify(web.state()));
  await child.stdin.end();
  await until("/run/plugins/added");
  child.kill("SIGTERM");
  await machine.sh("touch /run/plugins/forgive");
  expect(await outcome).toEqual(taken("patchbay hook", "SIGTERM"));
  await web.end();
  expect(await left()).toEqual([]);
});

test("while the DHCP service asks servers that are not there", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const there = segment.machine, container = await there.container("c1");
  await writeNetwork(there, "lan", [{ type: "bridge", bridge: "br0", ipam: service.ipam({ timeout: 600 }) }]);
  let before: Moment | undefined;
  for (const name of ["SIGTERM", "SIGINT", "SIGTERM"] as const) {
    const child = there.start(["env", `NETCONFPATH=${CONFIGS}`, PATCHBAY, "add", "lan", container.netnsPath]);
    const outcome = outcomeOf(child);
    await untilTrue(() => service.descriptors(), (names) => names.some((one) => one.startsWith("net:")));
    child.kill(name);
    expect(await outcome).toEqual(taken("patchbay add", name));
    expect(service.records()).toEqual([]);
    // What the first one sets for the whole host stays.
    before ??= await quietMoment(there);
    expect(await leftSince(before, there, IGNORED)).toEqual([]);
  }
});
