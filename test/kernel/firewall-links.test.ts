/**
 * An ingress policy keeps containers apart whatever links they are behind, whatever families they have, and whatever
 * backends their networks name. Each sends whole frames to the host, so also packets of a family in which it has no
 * address, and each looks what arrives.
 *
 * VLANs of a bridge are played where the kernel cannot filter them: with the links and the result that ADD would make.
 */
import { resolve } from "node:path";
import { expect, test } from "bun:test";
import { associating, connecting, datagram } from "../support/frames.ts";
import { lacks } from "../support/kernel-features.ts";
import { legacyPath } from "../support/legacy-iptables.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { difference, settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

const SENDER = resolve(import.meta.dir, "../support/send-frame.ts");
const ALTERNATIVE = "alt";

type Kind = "bridge" | "alternative name" | "VLAN" | "no gateway" | "ptp";
interface Site {
  kind: Kind;
  families: (4 | 6)[];
  backend: "iptables" | "nftables";
  /** The older tables of iptables. */
  older?: true;
}

/** Each kind has both backends, and each way to mix families is between backends as well as within one. */
const sites: Site[] = [
  { kind: "bridge", families: [4], backend: "iptables" },
  { kind: "bridge", families: [4, 6], backend: "nftables" },
  { kind: "bridge", families: [4, 6], backend: "iptables", older: true },
  { kind: "alternative name", families: [6], backend: "iptables" },
  { kind: "alternative name", families: [4], backend: "nftables" },
  { kind: "VLAN", families: [4, 6], backend: "iptables" },
  { kind: "VLAN", families: [4], backend: "nftables" },
  { kind: "VLAN", families: [6], backend: "iptables", older: true },
  { kind: "no gateway", families: [4], backend: "nftables" },
  { kind: "no gateway", families: [4, 6], backend: "iptables" },
  { kind: "ptp", families: [4, 6], backend: "iptables" },
  { kind: "ptp", families: [4], backend: "nftables" },
];

interface Place {
  name: string;
  container: Container;
  /** None where the host has no route to it. */
  reachedBy: (4 | 6)[];
  addresses: Record<4 | 6, string>;
  mac: string;
  /** Where it sends what shall be forwarded. */
  router: string;
  /** The link that is guarded. */
  link: string;
  chained?: { net(policy: string): Network; result: Record<string, unknown> };
}

const addressesOf = (index: number): Record<4 | 6, string> => ({ 4: `10.20.${index}.2`, 6: `fd20:${index}::2` });
const gatewaysOf = (index: number): Record<4 | 6, string> => ({ 4: `10.20.${index}.1`, 6: `fd20:${index}::1` });
const bits = { 4: 24, 6: 64 } as const;

/** What the plugin before firewall makes, and its result. */
async function connect(machine: Machine, { kind, families }: Site, index: number, container: Container) {
  const addresses = addressesOf(index), gateways = gatewaysOf(index);
  const ipam = {
    type: "static",
    addresses: families.map((family) => ({
      address: `${addresses[family]}/${bits[family]}`,
      ...kind !== "no gateway" && { gateway: gateways[family] },
    })),
  };
  const isPlayed = kind === "VLAN" && lacks("bridge VLAN filtering");
  const own: Record<Kind, Record<string, unknown> & { type: string }> = {
    bridge: { type: "bridge", bridge: `br${index}`, isGateway: true },
    "alternative name": { type: "bridge", bridge: `${ALTERNATIVE}-${index}`, isGateway: true },
    VLAN: { type: "bridge", bridge: "brv", ...!isPlayed && { vlan: index, isGateway: true } },
    "no gateway": { type: "bridge", bridge: `br${index}` },
    ptp: { type: "ptp" },
  };
  if (kind === "alternative name") {
    await machine.sh(`
      ip link add br${index} type bridge
      ip link property add dev br${index} altname ${ALTERNATIVE}-${index}`);
  }
  const result = await network(machine, { ...own[kind], name: `net${index}`, ipam }).add(container);
  if (isPlayed) {
    await machine.sh(
      `ip link add brv.${index} up type veth peer name port${index}; ip link set port${index} master brv up`,
    );
    for (const family of families) {
      await machine.sh(`ip address add ${gateways[family]}/${bits[family]} dev brv.${index} nodad`);
    }
    const mac = (await machine.sh(`cat /sys/class/net/brv.${index}/address`)).trim();
    result.interfaces.push({ name: `brv.${index}`, mac });
  }
  const inside = result.interfaces.find(({ sandbox }: { sandbox?: string }) => sandbox);
  const link = kind === "VLAN" ? result.interfaces.at(-1) : result.interfaces[0];
  if (kind !== "ptp") expect(link.name).toBe(kind === "VLAN" ? `brv.${index}` : `br${index}`);
  const router = (await machine.sh(`cat /sys/class/net/${link.name}/address`)).trim();
  return { result, mac: inside.mac as string, router, link: link.name as string, addresses };
}

async function openPlaces(machine: Machine): Promise<Place[]> {
  await machine.sh(`
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0 \
      net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.arp_ignore=1`);
  // The virtual machine's kernel has them as modules that nothing loads.
  const hasOlder = (await machine.run(["sh", "-c", "iptables-legacy -S && ip6tables-legacy -S"])).code === 0;
  const places: Place[] = [];
  for (const [at, site] of sites.entries()) {
    const index = at + 1, container = await machine.container(`c${index}`);
    const { result, ...facts } = await connect(machine, site, index, container);
    const { kind, families, backend, older } = site;
    const net = (ingressPolicy: string) => {
      const conf = { type: "firewall", name: `net${index}`, backend, ingressPolicy };
      const env = older && hasOlder ? { PATH: legacyPath() } : undefined;
      return network(machine, conf, undefined, { own: () => ({ prevResult: result }), env });
    };
    const name = `${kind} ${index} (${families.join(" and ")}, ${backend}${older ? " of the older tables" : ""})`;
    const reachedBy = kind === "no gateway" ? [] : families;
    places.push({ name, container, reachedBy, chained: { net, result }, ...facts });
  }
  const out = await machine.container("out"), addresses = addressesOf(99), gateways = gatewaysOf(99);
  await machine.sh(`
    ip link add vout up type veth peer name eth0 netns out
    ip -n out link set eth0 up
    ip address add ${gateways[4]}/24 dev vout; ip address add ${gateways[6]}/64 dev vout nodad
    ip -n out address add ${addresses[4]}/24 dev eth0; ip -n out address add ${addresses[6]}/64 dev eth0 nodad`);
  const macOf = async (link: string, container?: Container) =>
    (await machine.sh(`cat /sys/class/net/${link}/address`, { in: container })).trim();
  places.push({
    name: "outside",
    container: out,
    reachedBy: [4, 6],
    addresses,
    mac: JSON.parse(await machine.sh("ip -n out -j link show eth0"))[0].address,
    router: await macOf("vout"),
    link: "vout",
  });
  const watch = `table inet seen {
    set seen { type inet_proto . inet_service; flags dynamic; size 4096; }
    chain arriving { type filter hook prerouting priority -300; th dport 4000-4999 add @seen { meta l4proto . th dport }; }
  }`;
  for (const { container } of places) await machine.sh("nft -f -", { in: container, stdin: watch });
  await machine.sh("nft -f -", {
    stdin: `table inet seen {
      set senders { type ipv4_addr; flags dynamic; size 4096; }
      chain input { type filter hook input priority 0; udp dport ${MARKER} add @senders { ip saddr }; }
    }`,
  });
  return places;
}

/** A port tells who sent in which family. */
const portOf = (from: number, family: 4 | 6) => 4000 + 100 * family + from;
const MARKER = 4999;
const HOST = gatewaysOf(99)[4], QUEUED = "taskset --cpu-list 0";

/**
 * Everybody sends to everybody, in both families, and then to the host, which no policy keeps. What the host sends after
 * that arrives last: all of it waits in the queue of one processor.
 */
async function sendAll(machine: Machine, places: readonly Place[]): Promise<void> {
  for (const { container } of places) await machine.sh("nft flush set inet seen seen", { in: container });
  await machine.sh("nft flush set inet seen senders");
  await Promise.all(places.map(async ({ container, mac, router, addresses }, from) => {
    const frames: string[] = [];
    for (const to of places) {
      for (const family of to.reachedBy) {
        if (to.container === container) continue;
        const ends = { from: mac, to: router, source: addresses[family], destination: to.addresses[family] };
        for (const build of [connecting, datagram, associating]) frames.push(build(ends, 7, portOf(from, family)));
      }
    }
    frames.push(datagram({ from: mac, to: router, source: addresses[4], destination: HOST }, 7, MARKER));
    // It reads /sys, which `ip netns exec` mounts anew.
    await machine.sh(
      `${QUEUED} ip netns exec ${container.name} ${process.execPath} ${SENDER} eth0 ${frames.join(" ")}`,
    );
  }));
  await untilTrue(
    () => machine.sh("nft list set inet seen senders"),
    (text) => places.every(({ addresses }) => text.includes(addresses[4])),
  );
  for (const { addresses, reachedBy } of places) {
    for (const family of reachedBy) {
      await machine.sh(`${QUEUED} bash -c 'echo last >/dev/udp/${addresses[family]}/${MARKER}'`);
    }
  }
}

/** Who reaches whom, in one line for a family; a protocol that differs is told apart. */
async function arrived(machine: Machine, places: readonly Place[]): Promise<{ ways: string[]; isMarked: boolean }> {
  const ways: string[] = [];
  let isMarked = true;
  for (const { name, container, reachedBy } of places) {
    const { nftables } = JSON.parse(await machine.sh("nft -j list set inet seen seen", { in: container }));
    const elements: { concat: [string, number] }[] = nftables.at(-1).set.elem ?? [];
    const protocolsAt = (port: number) =>
      elements.filter(({ concat }) => concat[1] === port).map(({ concat }) => concat[0]).sort();
    if (reachedBy.length > 0 && protocolsAt(MARKER).length === 0) isMarked = false;
    for (const [from, sender] of places.entries()) {
      for (const family of [4, 6] as const) {
        const protocols = protocolsAt(portOf(from, family));
        if (protocols.length === 0) continue;
        ways.push(wayOf(sender.name, name, family) + (protocols.length === 3 ? "" : ` by ${protocols.join()} alone`));
      }
    }
  }
  return { ways, isMarked };
}

const wayOf = (from: string, to: string, family: number) => `IPv${family}: ${from} to ${to}`;

function expectedWays(places: readonly Place[], isOpen: (from: Place, to: Place) => boolean): string[] {
  return places.flatMap((to) =>
    places.filter((from) => from !== to && isOpen(from, to))
      .flatMap((from) => to.reachedBy.map((family) => wayOf(from.name, to.name, family)))
  );
}

test("containers are kept apart by policy over all kinds of links, families and backends", async () => {
  await using machine = await openMachine();
  const places = await openPlaces(machine), guardedPlaces = places.filter(({ chained }) => chained !== undefined);
  const under = async (policy: string, expected: string[]) => {
    await sendAll(machine, places);
    const wrong = await settled(async () => {
      const { ways, isMarked } = await arrived(machine, places);
      return [...difference(expected, ways), ...isMarked ? [] : ["the last packets have not arrived"]];
    });
    expect({ policy, wrong }).toEqual({ policy, wrong: [] });
  };
  for (const policy of ["open", "isolated", "same-bridge"]) {
    for (const { container, chained, link } of guardedPlaces) {
      await chained!.net(policy).add(container);
      if (policy !== "open") {
        expect(await machine.sh("nft list set inet patchbay_firewall guarded")).toContain(`"${link}"`);
      }
    }
    await under(
      policy,
      expectedWays(places, policy === "open" ? () => true : (from, to) => !from.chained || !to.chained),
    );
    for (const { container, chained } of guardedPlaces) {
      const net = chained!.net(policy), conf = { prevResult: chained!.result };
      await net.check(container, { conf });
      await net.del(container, { conf });
    }
    expect(await machine.sh("nft list tables inet")).toBe("table inet seen\n");
  }
  // Rules for a bridge stay, those for a link that goes with its container do not.
  const { link } = places.find(({ name }) => name.startsWith("ptp"))!;
  expect(await machine.sh("iptables-save; ip6tables-save")).not.toContain(link);
});
