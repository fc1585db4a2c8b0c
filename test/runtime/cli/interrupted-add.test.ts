/**
 * SIGINT and SIGTERM while `patchbay add` or `hook add` runs, in its own work and wherever it waits for somebody else: it
 * ends with status 0 and everything attached, or with 128 + signal and nothing left.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Subprocess } from "bun";
import { serverBehindBridge } from "../../support/dhcp/link.ts";
import { startService } from "../../support/dhcp/service.ts";
import { CONFIGS, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/resident-status.ts";

// Each call is one process, which the signals go to.
delete process.env.PATCHBAY_TEST_RESIDENT;

let machine: Machine, moment: Moment;

const env = [`NETCONFPATH=${CONFIGS}`, "CNI_PATH=/run/plugins"];
const IGNORED = /last_reserved_ip|file \/run\/(bundles|plugins|networks)\//;
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
const exists = async (path: string) => (await machine.run(["test", "-e", path])).code === 0;
const until = (path: string) => untilTrue(() => exists(path), Boolean);

/**
 * Says in /run/plugins what it begins and ends. ADD ends with a file `release`, as do all that it has started; DEL with
 * `forgive`.
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
  while [ ! -e /run/plugins/forgive ]; do sleep 0.01; done
  : >/run/plugins/deleted ;;
esac
echo '{"cniVersion":"1.1.0"}'
`;
const forget = () => machine.sh("cd /run/plugins; rm -f beside added release deleting forgive deleted");

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
  await writeNetwork(machine, "back", [other("br1", "10.8.0.0/24")]);
  await machine.sh("touch /run/plugins/release /run/plugins/forgive");
  for (const network of ["own", "mixed", "back"]) {
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

test("while a plugin of others runs: it is killed, and the DEL that takes back goes on through more signals", async () => {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    await forget();
    const form = name === "SIGINT" ? ["add"] : ["-i", "eth0", "add"];
    const child = start([...form, "mixed", "c1"], ["setsid"]), outcome = outcomeOf(child);
    await until("/run/plugins/added");
    await until("/run/plugins/beside");
    child.kill(name);
    await until("/run/plugins/deleting");
    // As a terminal does it, to the group.
    for (const more of ["SIGINT", "SIGTERM"] as const) process.kill(-child.pid, more);
    child.kill(name);
    await machine.sh("touch /run/plugins/forgive");
    expect(await outcome).toEqual(taken("patchbay add", name));
    expect(await exists("/run/plugins/deleted")).toBe(true);
    // Nor does what it had started.
    expect(await machine.run(["pgrep", "-x", "-g", String(child.pid), "sleep"])).toMatchObject({ code: 1 });
    expect(await left()).toEqual([]);
  }
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

test("while nobody reads the result", async () => {
  await machine.sh("mkfifo /run/plugins/full");
  const full = 'exec 3<>/run/plugins/full; head -c 65536 /dev/zero >&3; exec "$@" >&3';
  const child = start(["add", "own", "c1"], ["sh", "-c", full, "sh"]), outcome = outcomeOf(child);
  await until("/var/lib/cni/results");
  await untilTrue(() => machine.sh("ls /var/lib/cni/results"), (names) => names.includes("own-"));
  child.kill("SIGTERM");
  expect(await outcome).toMatchObject({ code: 143, stderr: expect.stringContaining("interrupted by SIGTERM") });
  await machine.sh("rm /run/plugins/full");
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
