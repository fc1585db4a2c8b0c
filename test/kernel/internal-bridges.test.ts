/** How long the bridge of an internal network of podman's is closed: as long as it has a container, and no longer. */
import { expect, test } from "bun:test";
import type { PodmanNetwork } from "../../src/interop/podman-documents/netavark.schema.ts";
import { confined } from "../support/confined.ts";
import { startBus, startFirewalld } from "../support/firewalld.ts";
import { openWorld } from "../support/hostile.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import type { Machine } from "../support/machine.ts";
import { attach, bridgeNetwork, containerIn } from "../support/netavark/attached.ts";
import { inputOf, isClosed, off, on, setUp, tearDown } from "../support/netavark/internal-network.ts";
import { ND } from "../support/netavark/names.ts";
import { netavarkProgram } from "../support/netavark/netavark.ts";
import { RandomKills } from "../support/random-kills.ts";

test("the bridge is closed until its last container has gone, and another network's is not opened with it", async () => {
  await using machine = await openWorld();
  const first = await machine.container("first");
  // The sysctls, the locks and what exists once stay after the first.
  await setUp(machine, first, inputOf({}));
  await tearDown(machine, first, inputOf({}));
  await machine.removeContainer(first);
  const moment = await quietMoment(machine), elsewhere = await machine.container("elsewhere");
  const away = containerIn([{ network: bridgeNetwork(9, { internal: true }) }], 9);
  await setUp(machine, elsewhere, away);
  const two = [await machine.container("one"), await machine.container("two")] as const;
  await setUp(machine, two[0], inputOf({}, 1));
  await setUp(machine, two[1], inputOf({}, 2));
  const closed = async () =>
    [...(await machine.sh("nft list map inet patchbay_internal bridges")).matchAll(/comment "(\w+)"/g)]
      .map(([, name]) => name).sort();
  expect(await closed()).toEqual(["podman8", "podman9"]);
  await tearDown(machine, two[0], inputOf({}, 1));
  expect(await closed()).toEqual(["podman8", "podman9"]);
  await tearDown(machine, two[1], inputOf({}, 2));
  expect(await closed()).toEqual(["podman9"]);
  // As netavark does it, which does not know of the table.
  await machine.sh("ip link delete podman9");
  await setUp(machine, two[0], inputOf({}, 1));
  await tearDown(machine, two[0], inputOf({}, 1));
  expect(await isClosed(machine)).toBe(false);
  await tearDown(machine, elsewhere, away);
  for (const container of [elsewhere, ...two]) await machine.removeContainer(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

const linkIndex = async (machine: Machine, link: string) =>
  (await machine.sh(`cat /sys/class/net/${link}/ifindex`)).trim();

test("a usual network that is the last on a bridge of an internal one opens it", async () => {
  await using machine = await openWorld();
  const usual = containerIn([{ network: bridgeNetwork(7, { network_interface: "podman8" }) }], 2);
  const [first, last] = [await machine.container("first"), await machine.container("last")];
  await setUp(machine, first, inputOf({}));
  await setUp(machine, last, usual);
  await tearDown(machine, first, inputOf({}));
  expect(await isClosed(machine)).toBe(true);
  await tearDown(machine, last, usual);
  expect(await isClosed(machine)).toBe(false);
});

test("a bridge that somebody has renamed is closed until its last container has gone", async () => {
  await using machine = await openWorld();
  const two = [await machine.container("one"), await machine.container("two")] as const;
  await setUp(machine, two[0], inputOf({}, 1));
  await setUp(machine, two[1], inputOf({}, 2));
  await machine.sh("ip link set podman8 down; ip link set podman8 name br8; ip link set br8 up");
  await tearDown(machine, two[0], inputOf({}, 1));
  expect(await isClosed(machine)).toBe(true);
  await tearDown(machine, two[1], inputOf({}, 2));
  expect(await isClosed(machine)).toBe(false);
});

const lookers: [what: string, Partial<PodmanNetwork>][] = [["an internal network", { internal: true }], [
  "a usual network",
  {},
]];

test.each(lookers)("no link with the index of a bridge that somebody has deleted is closed: %s", async (_, more) => {
  await using machine = await openWorld();
  await setUp(machine, await machine.container("one"), inputOf({}));
  const index = await linkIndex(machine, "podman8");
  await machine.sh(`ip link delete podman8; ip link add later index ${index} type veth peer name behind`);
  const container = await machine.container("two"), input = containerIn([{ network: bridgeNetwork(9, more) }], 2);
  await setUp(machine, container, input);
  const left = async () => (await machine.run(["nft", "list", "map", "inet", "patchbay_internal", "bridges"])).stdout;
  if (more.internal) expect(await left()).not.toContain("podman8");
  await tearDown(machine, container, input);
  expect(await isClosed(machine)).toBe(false);
});

test("a setup that fails closes nothing", async () => {
  await using machine = await openWorld();
  await machine.sh("ip link add podman8 type bridge; ip link add podman9 type veth peer name elsewhere");
  for (const network of [bridgeNetwork(8, { internal: true }), bridgeNetwork(7, { internal: true })]) {
    const input = containerIn([{ network }, { network: bridgeNetwork(9) }]), failing = await machine.container();
    expect((await attach(machine, "setup", failing, input)).code).toBe(1);
    expect([network.name, await isClosed(machine)]).toEqual([network.name, false]);
  }
});

test("a setup that fails leaves a bridge that was there as it was, in both families", async () => {
  await using machine = await openWorld();
  await machine.sh(`${off}; ${on}; ip link add podman8 type bridge`);
  const keys = "cat /proc/sys/net/ipv4/conf/podman8/forwarding /proc/sys/net/ipv6/conf/podman8/forwarding";
  expect(await machine.sh(keys)).toBe("1\n1\n");
  // The container's routes come after the bridge.
  const unreachable = [{ destination: "192.0.2.0/24", gateway: "198.51.100.1" }];
  const failed = await attach(machine, "setup", await machine.container(), inputOf({ routes: unreachable }));
  expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining("add route") });
  expect(await machine.sh(`${keys}; ip -br link show up dev podman8; ip address show to 10.88.0.0/24`)).toBe(
    "1\n1\n",
  );
  expect(await isClosed(machine)).toBe(false);
});

for (const driver of ["nftables", "firewalld", "none"]) {
  test(`a kernel without netfilter is an error before anything is made: ${driver}`, async () => {
    await using machine = await openWorld();
    await using _bus = driver === "firewalld" ? await startBus(machine) : undefined;
    await using _firewalld = driver === "firewalld" ? await startFirewalld(machine) : undefined;
    const { netnsPath } = await machine.container();
    await machine.sh(`mkdir -p ${ND}`);
    const program = [...confined({ lacksNetfilter: true }), netavarkProgram(), "-c", ND, "setup", netnsPath];
    const env = { NETAVARK_FW: driver, PATCHBAY_TRACE: "/run/trace" };
    const { code, stdout } = await machine.run(program, { stdin: JSON.stringify(inputOf({})), env });
    const error = "an internal network needs nf_tables, which this kernel does not have";
    expect({ code, stdout }).toEqual({ code: 1, stdout: `${JSON.stringify({ error })}\n` });
    expect(await machine.sh("cat /run/trace")).not.toContain("apply");
  });
}

test("without a firewall driver, too, and not on a bridge of the host's own", async () => {
  await using machine = await openWorld();
  const env = { NETAVARK_FW: "none" }, container = await machine.container();
  await setUp(machine, container, inputOf({}), env);
  expect(await isClosed(machine)).toBe(true);
  await tearDown(machine, container, inputOf({}));
  await machine.sh("ip link add podman8 type bridge; ip link set podman8 up");
  await setUp(machine, container, inputOf({ options: { mode: "unmanaged" } }));
  expect(await isClosed(machine)).toBe(false);
});

test("a network whose setup or teardown is killed leaves nothing after the next teardown", async () => {
  await using machine = await openWorld();
  const input = inputOf({});
  const first = await machine.container("first");
  await setUp(machine, first, input);
  await tearDown(machine, first, input);
  await machine.removeContainer(first);
  await machine.sh("cat >/run/input.json", { stdin: JSON.stringify(input) });
  const moment = await quietMoment(machine), kills = { setup: new RandomKills(), teardown: new RandomKills() };
  for (let round = 0; round < 24; round++) {
    const container = await machine.container(`killed${round}`), verb = round % 2 === 0 ? "setup" : "teardown";
    if (verb === "teardown") await setUp(machine, container, input);
    await kills[verb].kill(
      machine.start([netavarkProgram(), "-c", ND, "-f", "/run/input.json", verb, container.netnsPath]),
    );
    // No container is on a bridge that is open.
    const { code } = await machine.run(["sh", "-c", "ip -br link show master podman8 | grep -q ."]);
    if (code === 0) expect(await machine.sh("nft list map inet patchbay_internal bridges")).toContain('"podman8"');
    await tearDown(machine, container, input);
    await machine.removeContainer(container);
  }
  expect(Math.min(kills.setup.killed, kills.teardown.killed)).toBeGreaterThan(0);
  expect(await leftSince(moment, machine)).toEqual([]);
});
