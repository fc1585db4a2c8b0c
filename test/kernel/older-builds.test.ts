/**
 * Attachments that an older build made, without what has been added since: CHECK and inspect say what they lack, repair makes
 * it, and DEL leaves nothing, whether repair came or not.
 *
 * An older build is played: what it did not make is taken away, from the kernel and from the ledger.
 */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";

const OF_OLDER_BUILD = /an older build made the attachment without that: 'patchbay repair' makes it/;

interface Shown {
  containerId: string;
  plugins: { resources: { kind: string; state: string; differences: string[] }[] }[];
}

/** What inspect finds of a kind. */
async function inspected(machine: Machine, { name }: Container, kind: string): Promise<string[]> {
  const { stdout } = await machine.run([PATCHBAY, "inspect", "--json"]);
  const shown = (JSON.parse(stdout) as Shown[]).filter(({ containerId }) => containerId === `ctr-${name}`);
  const resources = shown.flatMap(({ plugins }) => plugins).flatMap(({ resources }) => resources);
  return resources.filter((one) => one.kind === kind).flatMap(({ state, differences }) => [state, ...differences]);
}

async function expectLack(machine: Machine, net: Network, container: Container, kind: string, says: RegExp[]) {
  const unsaid = (text: string) => [...says, OF_OLDER_BUILD].filter((what) => !what.test(text));
  const { code, stdout } = await net.call("CHECK", container);
  expect({ code, unsaid: unsaid(stdout) }).toEqual({ code: 1, unsaid: [] });
  const [state, ...differences] = await inspected(machine, container, kind);
  expect({ state, unsaid: unsaid(differences.join("; ")) }).toEqual({ state: "differs", unsaid: [] });
}

/** Tables of ours, without what counters have counted. */
const tablesOf = (machine: Machine) =>
  machine.sh(`
    nft list tables | grep patchbay | while read -r _ family name; do
      nft list table $family $name | sed 's/packets [0-9]* bytes [0-9]*//'
    done`);

const repair = (machine: Machine) => machine.run([PATCHBAY, "repair"]);

test.skipIf(lacks("isolated bridge ports"))("what portIsolation lacks is told and repaired", async () => {
  await using machine = await openMachine();
  // Its own name is in the rules.
  await machine.sh("ip link add br0 type bridge; ip link property add dev br0 altname containers");
  const ipam = { type: "host-local", subnet: "10.20.0.0/24" };
  const net = network(machine, { type: "bridge", bridge: "containers", isGateway: true, portIsolation: true, ipam });
  for (const isRepaired of [false, true]) {
    const [one, other] = [await machine.container(), await machine.container()];
    const addressOf = async (container: Container) => (await net.add(container)).ips[0].address.replace("/24", "");
    const own = await addressOf(one), neighbour = await addressOf(other), tables = await tablesOf(machine);
    await machine.sh(
      `nft delete table netdev patchbay_isolation; sed -i '/"kind":"port-isolation"/d' /run/patchbay/net/*`,
    );
    await machine.sh(`ip route add ${neighbour} via 10.20.0.1`, { in: one });
    await machine.sh(`ip route add ${own} via 10.20.0.1`, { in: other });
    const missing = /the container in map members .*is missing.*chain on_br0 .* is missing/;
    await expectLack(machine, net, one, "port-isolation", [missing]);
    if (isRepaired) {
      expect(await repair(machine)).toMatchObject({ code: 0 });
      expect(await tablesOf(machine)).toBe(tables);
      for (const container of [one, other]) await net.check(container);
    }
    expect(await ping(machine, one, neighbour)).toBe(!isRepaired);
    for (const container of [one, other]) await net.del(container);
    expect(await tablesOf(machine)).toBe("");
  }
});

test("what a policy lacks in the other family, and against other backends, is told and repaired", async () => {
  await using machine = await openMachine();
  await machine.sh("sysctl -qw net.ipv4.ip_forward=1");
  const attach = async (number: number, backend: string) => {
    const container = await machine.container();
    const ipam = { type: "static", addresses: [{ address: `10.2${number}.0.2/24`, gateway: `10.2${number}.0.1` }] };
    const routes = [{ dst: "0.0.0.0/0", gw: `10.2${number}.0.1` }];
    const conf = { type: "bridge", name: `net${number}`, bridge: `br${number}`, isGateway: true };
    const prevResult = await network(machine, { ...conf, ipam: { ...ipam, routes } }).add(container);
    const policy = { type: "firewall", name: `net${number}`, backend, ingressPolicy: "isolated" };
    const net = network(machine, policy, undefined, { own: () => ({ prevResult }) });
    return { container, net, add: () => net.add(container), del: () => net.del(container, { conf: { prevResult } }) };
  };
  const one = await attach(1, "iptables"), other = await attach(2, "nftables");
  await other.add();
  const rulesNow = async () => `${await machine.sh("ip6tables -S")}${await tablesOf(machine)}`;
  const others = await tablesOf(machine);
  for (const isRepaired of [false, true]) {
    await one.add();
    const rules = await rulesNow();
    expect(await ping(machine, one.container, "10.22.0.2")).toBe(false);
    await machine.sh(`
      sed -i 's/,"isKnownToAll":true//' /run/patchbay/net1/*@firewall
      ip6tables -F; ip6tables -X
      nft 'flush map inet patchbay_firewall members; delete counter inet patchbay_firewall on_br1
        delete element inet patchbay_firewall guarded { "br1" }'`);
    expect(await tablesOf(machine)).toBe(others);
    expect(await ping(machine, one.container, "10.22.0.2")).toBe(true);
    await expectLack(machine, one.net, one.container, "firewall", [
      /expected ip6tables rule -A CNI-ISOLATION-STAGE-1 .* not found/,
      /the container in map members .* is missing/,
      /br1 in set guarded .* is missing/,
    ]);
    if (isRepaired) {
      expect(await repair(machine)).toMatchObject({ code: 0 });
      expect(await rulesNow()).toBe(rules);
      await one.net.check(one.container);
      expect(await ping(machine, one.container, "10.22.0.2")).toBe(false);
    }
    await one.del();
    expect(await tablesOf(machine)).toBe(others);
  }
});
