/** What Debian's netavark 1 has written to iptables of a container and of a network goes, and nothing of the others'. */
import { expect, test } from "bun:test";
import { networkRulesKind } from "../../../src/resources/netavark/network-rules.ts";
import { publishedPortsKind } from "../../../src/resources/netavark/published-ports.ts";
import { networkHash } from "../../../src/resources/netavark/shared/netavark1-rules.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { HELPERS } from "../../support/netavark/netavark.ts";
import { ND } from "../../support/netavark/names.ts";
import { drive } from "../../support/resources.ts";

type Ports = ReturnType<typeof published>[];

/** The rules and chains of both families, without counters. */
async function rulesIn(machine: Machine): Promise<string[]> {
  const text = await machine.sh("iptables-save; ip6tables-save");
  return text.split("\n").filter((line) => /^[-:]/.test(line)).map((line) => line.replace(/ \[.*/, ""));
}

async function setUp(machine: Machine, network: number, number: number, ports: Ports): Promise<void> {
  const { netnsPath } = await machine.container(`c${network}${number}`);
  const input = containerIn([{ network: bridgeNetwork(network, { options: { isolate: "true" } }) }], number, ports);
  const networks = Object.fromEntries(input.networks.map(({ name, ...rest }) => [name, rest]));
  const stdin = JSON.stringify({ ...input, networks });
  const { code, stdout } = await machine.run([`${HELPERS}/netavark`, "-c", ND, "setup", netnsPath], { stdin });
  expect({ code, error: code === 0 ? "" : stdout }).toEqual({ code: 0, error: "" });
}

/** Removes what a container has published, as teardown does without a ledger. */
async function removePorts(machine: Machine, network: number, number: number, ports: Ports, isRestated = true) {
  const { container_id, networks: [attachment] } = containerIn(
    [{ network: bridgeNetwork(network) }],
    number,
  );
  const [first, second] = bridgeNetwork(network).subnets!;
  const spec = {
    network: attachment!.name,
    containerId: container_id,
    ifName: "eth0",
    networkId: bridgeNetwork(network).id,
    targets: [first!, second!].map(({ subnet }, index) => ({ address: attachment!.static_ips[index]!, subnet })),
    ports: ports.map(({ host_port, container_port, protocol, range }) => ({
      hostPort: host_port,
      containerPort: container_port,
      protocol,
      range,
    })),
  };
  expect(await drive(machine, [{ verb: "remove", kind: publishedPortsKind.kind, spec, isRestated }])).toEqual([
    "removed",
  ]);
}

async function removeNetwork(machine: Machine, network: number, isRestated = true): Promise<void> {
  const { name, id, network_interface, subnets } = bridgeNetwork(network);
  const spec = {
    network: name,
    networkId: id,
    bridge: network_interface,
    subnets,
    isInternal: false,
    isolation: "normal",
    dnsPort: 53,
    dnsServers: [],
  };
  expect(await drive(machine, [{ verb: "remove", kind: networkRulesKind.kind, spec, isRestated }])).toEqual([
    "removed",
  ]);
}

/** Later releases have a third chain, for strict isolation. */
const strict = (bridge: string) => `
  for command in iptables ip6tables; do
    $command -N NETAVARK_ISOLATION_3 2>/dev/null || true
    $command -A NETAVARK_ISOLATION_1 -i ${bridge} ! -o ${bridge} -j NETAVARK_ISOLATION_3
    $command -A NETAVARK_ISOLATION_3 -o ${bridge} -j DROP
  done`;

test("a container's ports, and a network, beside those of others", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}; iptables -nL >/dev/null; ip6tables -nL >/dev/null`);
  const web = [published(8080, 80), published(8081, 81, { protocol: "udp" })], other = [published(9090, 80)];
  await setUp(machine, 7, 3, [published(7070, 80)]);
  await machine.sh(strict("podman7"));
  const elsewhere = await rulesIn(machine);
  await setUp(machine, 8, 2, other);
  await machine.sh(strict("podman8"));
  const neighbour = await rulesIn(machine);
  await setUp(machine, 8, 1, web);
  const all = await rulesIn(machine);
  expect(all.length - neighbour.length).toBe(2 * 2 * 4);

  // What a ledger of ours tells of is not theirs.
  await removePorts(machine, 8, 1, web, false);
  expect(await rulesIn(machine)).toEqual(all);
  await removePorts(machine, 8, 1, web);
  expect(await rulesIn(machine)).toEqual(neighbour);
  await removePorts(machine, 8, 2, other);
  const chain = `NETAVARK-DN-${networkHash("net8")}`;
  expect((await rulesIn(machine)).filter((line) => line.includes(chain) || line.includes("9090"))).toEqual([]);

  // The bridge has ports until its containers are gone.
  await removeNetwork(machine, 8);
  expect((await rulesIn(machine)).join("\n")).toContain("podman8");
  await machine.sh("ip link del podman8");
  await removeNetwork(machine, 8, false);
  expect((await rulesIn(machine)).join("\n")).toContain("podman8");
  await removeNetwork(machine, 8);
  expect(await rulesIn(machine)).toEqual(elsewhere);
});

test("of a range, which is not recognised, nothing leads to the rules; they go with the last container's", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}; iptables -nL >/dev/null; ip6tables -nL >/dev/null`);
  const range = [published(9000, 90, { range: 2 })], other = [published(9090, 80)];
  await setUp(machine, 8, 2, other);
  const neighbour = await rulesIn(machine);
  await setUp(machine, 8, 1, range);
  await removePorts(machine, 8, 1, range);
  const left = (await rulesIn(machine)).filter((line) => !neighbour.includes(line));
  expect(left.filter((line) => !line.startsWith(`-A NETAVARK-DN-${networkHash("net8")} `))).toEqual([]);
  expect(left).toHaveLength(2 * 3);
  await removePorts(machine, 8, 2, other);
  expect((await rulesIn(machine)).join("\n")).not.toMatch(/:9001|NETAVARK-DN/);
  // A network of which a part is missing goes, too.
  await machine.sh("ip link del podman8");
  await removeNetwork(machine, 8);
  expect((await rulesIn(machine)).join("\n")).not.toMatch(/podman8|10\.88|fd00:8|NETAVARK-[0-9A-F]{13}/);
});
