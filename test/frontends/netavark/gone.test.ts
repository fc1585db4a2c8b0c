/** Containers whose teardown was killed: podman never asks again, so the next setup and `gc` clean up. */
import { expect, test } from "bun:test";
import { untilGone } from "../../support/gone.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { AARDVARK, daemons, filesIn, ND } from "../../support/netavark/names.ts";
import { netavarkProgram } from "../../support/netavark/netavark.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

/** Locks stay, and the file with the firewall driver. */
const KEPT = new RegExp(
  `^[-+] file (${ND}/(firewall/firewall-(driver|reload\\.lock)|aardvark\\.lock)|/var/lib/cni/\\.patchbay\\.lock)`,
);
const withNames = (number: number) => bridgeNetwork(number, { dns_enabled: true });
const args = ["-c", ND, `--aardvark-binary=${AARDVARK}`];

/** A container in two networks, with names, and with ports of all addresses and of one. */
const inputOf = (number: number) =>
  containerIn([{ network: withNames(8) }, { network: withNames(7) }], number, [
    published(8000 + number, 80),
    published(9000 + number, 80, { host_ip: "192.0.2.1" }),
  ]);

async function call(
  machine: Machine,
  verb: "setup" | "teardown",
  container: Container,
  input: object,
): Promise<void> {
  await machine.sh(`mkdir -p ${ND}`);
  const command = [netavarkProgram(), ...args, verb, container.netnsPath];
  const { code, stdout, stderr } = await machine.run(command, { stdin: JSON.stringify(input) });
  expect({ code, stderr, error: code === 0 ? "" : stdout }).toEqual({ code: 0, stderr: "", error: "" });
}

/** The ids of containers in everything that netavark and we keep. */
async function idsIn(machine: Machine): Promise<string> {
  const state = Object.entries(await filesIn(machine)).flat().join("\n");
  return state + await machine.sh("find /run/patchbay; nft list ruleset");
}

/** The kernel takes links away a moment after their namespace. */
async function remove(machine: Machine, container: Container): Promise<void> {
  const links = async () => (await machine.sh("ip -br link show type veth")).split("\n").length;
  const before = await links();
  await machine.removeContainer(container);
  await untilTrue(links, (now) => now < before || before === 1);
}

/** Kills a teardown at its n-th removal of a file or message to the kernel. Returns whether it was killed. */
async function kill(machine: Machine, container: Container, input: object, at: number): Promise<boolean> {
  const teardown = [netavarkProgram(), ...args, "-f", "/run/input.json", "teardown", container.netnsPath];
  await machine.sh("cat >/run/input.json", { stdin: JSON.stringify(input) });
  const traced = [
    "strace",
    "-f",
    "-qq",
    "-o",
    "/dev/null",
    "-e",
    `inject=unlink,unlinkat,sendto:signal=KILL:when=${at}`,
  ];
  const { code } = await machine.run([...traced, ...teardown]);
  await machine.sh("rm /run/input.json");
  return code !== 0;
}

test("a teardown killed at several moments, then the setup of another: nothing of the dead", async () => {
  await using machine = await openMachine();
  await machine.sh("ip addr add 192.0.2.1/32 dev lo");
  const last = await machine.container("last");
  for (const verb of ["setup", "teardown"] as const) await call(machine, verb, last, inputOf(9));
  const moment = await quietMoment(machine);
  let killed = 0;
  for (const [round, at] of [1, 4, 9, 16, 25, 40].entries()) {
    const dead = await machine.container(`dead${round}`), input = inputOf(1);
    await call(machine, "setup", dead, input);
    if (await kill(machine, dead, input, at)) killed++;
    await remove(machine, dead);
    // podman has given its address to another container, with the same port.
    const heir = { ...inputOf(1), container_id: "f".repeat(64) };
    await call(machine, "setup", last, heir);
    const ids = await idsIn(machine);
    expect(ids).toContain(heir.container_id);
    expect(ids).not.toContain(input.container_id);
    await call(machine, "teardown", last, heir);
    expect(await daemons(machine)).toEqual([]);
  }
  expect(killed).toBeGreaterThan(2);
  expect(await leftSince(moment, machine, KEPT)).toEqual([]);
});

test("gc takes away what a killed teardown has left, and aardvark-dns ends with the last names", async () => {
  await using machine = await openMachine();
  const first = await machine.container("first");
  for (const verb of ["setup", "teardown"] as const) await call(machine, verb, first, inputOf(9));
  await machine.removeContainer(first);
  const moment = await quietMoment(machine), dead = await machine.container("dead");
  await call(machine, "setup", dead, inputOf(1));
  expect(await daemons(machine)).toHaveLength(1);
  // The names are of the attachment: inspect misses them, and repair writes them again.
  const file = `${ND}/aardvark-dns/net7`, names = await machine.sh(`cat ${file}`);
  await machine.sh(`rm ${file}`);
  const { code, stdout } = await machine.run([PATCHBAY, "inspect"]);
  expect([code, stdout]).toEqual([1, expect.stringContaining("names web1 in net7 are missing in")]);
  await machine.sh(`${PATCHBAY} repair`);
  expect(await machine.sh(`cat ${file}`)).toBe(names);
  expect(await kill(machine, dead, inputOf(1), 2)).toBe(true);
  // podman has given its address and its ports to another one, before its namespace was gone.
  const heir = { ...inputOf(1), container_id: "f".repeat(64) }, second = await machine.container("second");
  await call(machine, "setup", second, heir);
  const ruled = async (id: string) => (await machine.sh("nft list ruleset")).split(id).length - 1;
  const rules = await ruled(heir.container_id);
  expect(rules).toBeGreaterThan(5);
  await remove(machine, dead);
  await untilGone(machine, 2);
  await machine.sh(`${PATCHBAY} gc --gone`);
  expect([await ruled(inputOf(1).container_id), await ruled(heir.container_id)]).toEqual([0, rules]);
  expect(await daemons(machine)).toHaveLength(1);
  await remove(machine, second);
  await machine.sh(`${PATCHBAY} gc --gone`);
  expect(await daemons(machine)).toEqual([]);
  expect(await leftSince(moment, machine, KEPT)).toEqual([]);
});

test("a container lives whose namespace has no path here: nothing of it is taken away before it ends", async () => {
  await using machine = await openMachine();
  const [lives, other] = [await machine.container("lives"), await machine.container("other")];
  await call(machine, "setup", lives, inputOf(1));
  const process = machine.start(["nsenter", `--net=${lives.netnsPath}`, "sleep", "infinity"]);
  await untilTrue(() => machine.sh(`ip netns pids ${lives.name}`), (pids) => pids !== "");
  const before = await idsIn(machine), id = inputOf(1).container_id;
  // As seen by a service with mounts of its own: the file exists, and the namespace is not mounted on it.
  await machine.sh(`umount -l ${lives.netnsPath}`);
  for (const verb of ["setup", "teardown"] as const) await call(machine, verb, other, inputOf(2));
  const count = (text: string) => text.split(id).length;
  expect(count(await idsIn(machine))).toBe(count(before));
  process.kill("SIGKILL");
  await untilTrue(() => machine.sh("ip -br link show type veth"), (links) => links === "");
  await call(machine, "setup", other, inputOf(2));
  expect(await idsIn(machine)).not.toContain(id);
  await call(machine, "teardown", other, inputOf(2));
});

test("a setup says what it cannot take away of another container, and a later one takes it", async () => {
  await using machine = await openMachine();
  const [dead, other] = [await machine.container("dead"), await machine.container("other")];
  const named = containerIn([{ network: withNames(7) }], 1), plain = containerIn([{ network: bridgeNetwork(8) }], 2);
  await call(machine, "setup", dead, named);
  await remove(machine, dead);
  const file = `${ND}/aardvark-dns/net7`;
  await machine.sh(`mount --bind ${file} ${file}`);
  const { code, stderr } = await attach(machine, "setup", other, plain, { RUST_LOG: "warn" });
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(`eth0 of container ${named.container_id}, which is gone, stays: `),
  ]);
  await machine.sh(`umount ${file}`);
  for (const verb of ["teardown", "setup", "teardown"] as const) await call(machine, verb, other, plain);
  expect(await idsIn(machine)).not.toContain(named.container_id);
});

test("gc waits while a setup or teardown runs; the next setup takes away a ledger that is empty", async () => {
  await using machine = await openMachine();
  const [dead, other] = [await machine.container("dead"), await machine.container("other")];
  await call(machine, "setup", dead, inputOf(1));
  await remove(machine, dead);
  // netavark holds this lock while it works.
  const holder = machine.start(["flock", ND, "sleep", "infinity"]);
  await untilTrue(() => machine.run(["flock", "-n", ND, "true"]), ({ code }) => code !== 0);
  const before = await idsIn(machine), gc = machine.start([PATCHBAY, "gc", "--gone"]);
  const opened = () => machine.sh(`ls -l /proc/${gc.pid}/fd 2>/dev/null || true`);
  await untilTrue(
    opened,
    (files) => files.split("\n").some((line) => line.endsWith(` ${ND}`)) || gc.exitCode !== null,
  );
  expect([gc.exitCode, await idsIn(machine)]).toEqual([null, before]);
  await machine.sh(`kill $(ps -o pid= --ppid ${holder.pid})`);
  expect(await gc.exited).toBe(0);
  expect(await idsIn(machine)).not.toContain(inputOf(1).container_id);
  await machine.sh(
    "mkdir -m 700 /run/patchbay/net5; install -m 600 /dev/null /run/patchbay/net5/none@eth0@netavark-bridge",
  );
  await call(machine, "setup", other, inputOf(2));
  expect(await machine.sh("ls -I 'serve*' /run/patchbay")).toBe("net7\nnet8\n");
  await call(machine, "teardown", other, inputOf(2));
});

test("a port stays with its container while that lives, and goes to the next when it is gone", async () => {
  await using machine = await openMachine();
  const [one, two] = [await machine.container(), await machine.container()];
  const [first, second] = [1, 2].map((number) => ({
    ...containerIn([{ network: bridgeNetwork(8) }], number, [published(8080, 80)]),
    // Comments in nftables are shorter.
    container_id: `${number}`.repeat(128),
  }));
  const leadsTo = async () => (await machine.sh("nft list table inet netavark")).match(/8080 .*?: (\S+ \. 80)/)?.[1];
  expect(await attach(machine, "setup", one, first!)).toMatchObject({ code: 0 });
  await machine.sh(`ip -n ${two.name} link set lo up`);
  const held = await leadsTo(), before = await quietMoment(machine);
  const taken = `host port 8080/tcp is taken by container ${first!.container_id}, interface eth0 of network net8`;
  expect(await attach(machine, "setup", two, second!)).toMatchObject({
    code: 1,
    json: { error: expect.stringContaining(taken) },
  });
  expect(await leftSince(before, machine)).toEqual([]);
  // More ledgers than a setup looks at.
  await machine.sh(
    "mkdir -p /run/patchbay/many; cd /run/patchbay/many; for n in $(seq 2000); do echo >$n@eth0@netavark-bridge; done",
  );
  await remove(machine, one);
  expect(await attach(machine, "setup", two, second!)).toMatchObject({ code: 0 });
  expect([held, await leadsTo()]).toEqual(["10.88.0.11 . 80", "10.88.0.12 . 80"]);
});
