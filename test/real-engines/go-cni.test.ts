/**
 * Engines that call plugins by go-cni (test/support/engines/go-networks.ts): many containers at once, an agent that is
 * started again, killed half-way, and a boot. Nothing is left.
 */
import { expect, test } from "bun:test";
import { type Attached, untilNoPlugins } from "../support/engines/go-engine.ts";
import { type EngineInGo, engines, HOST_IP, hostPortOf } from "../support/engines/go-networks.ts";
import { fine, GoNode } from "../support/engines/go-node.ts";
import { leftSince } from "../support/leftovers.ts";
import type { Container } from "../support/machine.ts";
import { randomBelow } from "../support/random.ts";
import { ping, serve } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";
import { ownShare } from "../support/share.ts";

const COUNT = 6;
const named = ownShare(engines).map((engine) => [engine.name, engine] as const);

/** go-cni's own network for loopback is of a version without CHECK. */
const hasCheck = ({ networks }: EngineInGo) => !networks.includes("loopback");
const NO_CHECK = expect.objectContaining({ error: expect.stringContaining("does not support the CHECK command") });
const checked = (engine: EngineInGo, count = COUNT) => hasCheck(engine) ? fine(count) : Array(count).fill(NO_CHECK);

/** nerdctl leaves that to runc. */
const setsUpLoopback = ({ networks }: EngineInGo) => JSON.stringify(networks).includes("loopback");

test.each(named)("%s: containers at once, before and after its agent is started again", async (_, engine) => {
  await using node = await GoNode.open(engine);
  const { machine } = node, containers = await node.containers(COUNT);
  const addresses = addressesIn(await node.attached(containers), engine);
  expect(new Set(addresses.flat()).size).toBe(addresses.flat().length);
  for (const [index, container] of containers.entries()) {
    const inside = await machine.sh("ip -o addr show", { in: container });
    for (const address of addresses[index]!) expect(inside).toContain(` ${address}/`);
    if (setsUpLoopback(engine)) expect(await machine.sh("ip link show lo", { in: container })).toContain("UP");
  }
  await expectLeases(node, containers, addresses);
  const [first, second] = containers as [Container, Container];
  expect(await ping(machine, second, addresses[0]![0]!)).toBe(true);
  const { portMappings } = engine.ofContainer?.("", node.numberOf(first)).capabilities ?? {};
  if (portMappings !== undefined) {
    await using server = await serve(machine, first, "tcp", portMappings[0]!.containerPort);
    for (const from of [undefined, second]) {
      expect(await server.ask(from, HOST_IP, hostPortOf(node.numberOf(first)))).toBeDefined();
    }
  }

  await node.restartAgent();
  expect(await node.all("check", containers)).toEqual(checked(engine));
  expect(await node.differences()).toBe("");
  expect(await node.all("remove", containers.slice(1))).toEqual(fine(COUNT - 1));
  expect(await node.all("check", [first])).toEqual(checked(engine, 1));
  expect(await node.differences()).toBe("");
  expect(await node.all("remove", [first])).toEqual(fine(1));
  expect(await node.all("remove", containers)).toEqual(fine(COUNT));
  expect(await node.all("remove", containers, "")).toEqual(fine(COUNT));
  await node.endContainers();
  expect(await leftSince(node.moment, machine)).toEqual([]);
});

test.each(named)("%s: namespaces that are gone before their containers are removed", async (_, engine) => {
  await using node = await GoNode.open(engine);
  const containers = await node.containers(2), [gone, unnamed] = containers as [Container, Container];
  await node.attached(containers, "setup serially");
  const removals = [...node.callsOf("remove", [gone]), ...node.callsOf("remove", [unnamed], "")];
  await node.endContainers();
  expect(await node.go.all(removals)).toEqual(fine(2));
  expect(await leftSince(node.moment, node.machine)).toEqual([]);
});

test.each(named)("%s: killed while it attaches containers", async (_, engine) => {
  await using node = await GoNode.open(engine);
  const { machine } = node;
  // Plugins go on without the agent that called them. Either they have ended when it removes what it knows of, or not.
  for (const areEnded of [true, false]) {
    const containers = await node.containers(COUNT), begun = 1 + randomBelow(COUNT);
    node.go.begin(node.callsOf("setup", containers));
    await untilTrue(() => node.begun(containers), (count) => count >= begun);
    await node.go.kill();
    if (areEnded) await untilNoPlugins(machine);
    await node.startAgent();
    expect(await node.all("remove", containers)).toEqual(fine(COUNT));
    if (!areEnded) {
      // Nobody could know of an ADD that had not come to its ledger.
      await untilNoPlugins(machine);
      expect(await node.all("remove", containers, "")).toEqual(fine(COUNT));
    }
    await node.endContainers();
    expect(await leftSince(node.moment, machine)).toEqual([]);
  }
});

test.each(named)("%s: a boot between ADD and CHECK", async (_, engine) => {
  await using node = await GoNode.open(engine);
  const { machine } = node;
  await node.attached(await node.containers(2));
  await node.reboot();
  const containers = node.running;
  for (const { error } of await node.all("check", containers)) {
    expect(error).toMatch(
      /loopback interface is down|Cannot find container link eth0|does not support the CHECK command/,
    );
  }
  // The address of before is a second one otherwise.
  if (engine.leases[0]!.startsWith("/var/lib/")) expect(await node.all("remove", containers, "")).toEqual(fine(2));
  const addresses = addressesIn(await node.attached(containers), engine);
  expect(await node.all("check", containers)).toEqual(checked(engine, 2));
  expect(await node.differences()).toBe("");
  await expectLeases(node, containers, addresses);
  expect(await node.all("remove", containers)).toEqual(fine(2));
  await node.endContainers();
  // Two at once make the bridge anew: whose MAC address it has when the kernel gives it a link-local one, varies.
  expect(await leftSince(node.moment, machine, /^[+-] host address \S+ linklocal\(/)).toEqual([]);
});

/** The addresses of each container. */
function addressesIn(results: readonly Attached[], { ifNames }: EngineInGo): string[][] {
  return results.map(({ Interfaces }) => ifNames.flatMap((name) => Interfaces[name]!.IPConfigs!.map(({ IP }) => IP)));
}

/** A file an address, with the container in the first line and the interface in the second: people and engines read them. */
async function expectLeases(node: GoNode, containers: readonly Container[], addresses: string[][]): Promise<void> {
  const { machine, engine } = node;
  const files = engine.leases.map((directory) => `${directory}/[0-9f]*`).join(" ");
  const lines = await machine.sh(
    `for file in ${files}; do echo "$(basename $file) $(tr -d '\\r' <$file | tr '\\n' ' ')"; done`,
  );
  const expected = containers.flatMap((one, index) => {
    const each = addresses[index]!.length / engine.ifNames.length;
    return addresses[index]!.map((address, at) =>
      `${address} ${node.idOf(one)} ${engine.ifNames[Math.floor(at / each)]}`
    );
  });
  expect(lines.trimEnd().split("\n").map((line) => line.trim()).sort()).toEqual(expected.sort());
}
