/**
 * The plugin dhcp when the container's root does what a container's root can do: answer in the server's place, remove the
 * address, rename or delete the link. Only the container itself suffers.
 */
import { expect, test } from "bun:test";
import type { Container } from "../../../support/machine.ts";
import { BROADCAST, captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { framesOf, openScene, type Scene, untilLeased, untilRoutes } from "../../../support/dhcp/scene.ts";
import { type Received, serveScript } from "../../../support/dhcp/scripted-server.ts";
import { addressesIn } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", FORGED = "192.168.77.200", SERVER = "192.168.77.1";
const { addresses, routes, text, u16, u32 } = value;
const OFTEN = { leaseSeconds: 20, options: { 58: u32(2) } };

/** Links, addresses and routes of a namespace, without what changes by itself. */
async function stateOf({ machine }: Scene, container?: Container): Promise<string> {
  const where = container && { in: container };
  const links = JSON.parse(await machine.sh("ip -j link", where)) as Record<string, unknown>[];
  const shown = await machine.sh("ip -br -4 address; ip -4 route show table all | sed 's/ linkdown//'", where);
  return [...links.map(({ ifname, address, mtu }) => `${ifname} ${address} ${mtu}`), shown].join("\n");
}

/** The container's eth0 is replaced by one of the same hardware address that leads to a namespace `evil`. */
async function impersonate({ machine, segment }: Scene, container: Container) {
  const evil = await machine.container("evil"), mac = (await linkIn(machine, container)).address;
  const { address: serverMac } = await linkIn(machine, segment.site.namespace, "s0");
  await machine.sh(`
    ip netns exec evil sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/dad_transmits'
    ip -n ${container.name} link set eth0 down
    ip -n ${container.name} link set eth0 name real
    ip -n ${container.name} link add eth0 address ${mac} type veth peer name s0 address ${serverMac} netns evil
    ip -n evil link set lo up
    ip -n evil link set s0 up
    ip -n ${container.name} link set eth0 up
    ip -n evil address add ${SERVER}/24 dev s0
    ip -n evil route add 255.255.255.255 dev s0`);
  return { segment, namespace: evil, address: SERVER };
}

test("answers that the container forges have effects in the container alone", async () => {
  await using scene = await openScene({ address: ADDRESS, ...OFTEN });
  const { segment, machine, server, service } = scene;
  const victim = await machine.container("c1"), other = await machine.container("c2"), net = service.network();
  await net.add(victim);
  await net.add(other);
  await untilLeased(scene, other, "192.168.77.51");
  const site = await impersonate(scene, victim), marker = `${segment.folder}/forged`;
  const host = await stateOf(scene), neighbour = await stateOf(scene, other);
  const forged = {
    3: addresses("192.168.77.9"),
    12: text(`$(touch ${marker})`),
    15: text("../../../etc"),
    26: u16(576),
    51: u32(20),
    56: text("\n<3>forged; $(reboot)"),
    58: u32(2),
    67: text("/etc/passwd"),
    121: routes(["0.0.0.0/0", "192.168.77.9"], ["192.168.77.1/32", "0.0.0.0"], ["10.0.0.0/8", "192.168.77.9"]),
  };
  const impostor = await serveScript(site, { address: ADDRESS, options: forged });
  await untilRoutes(scene, victim, (all) => all.includes("10.0.0.0/8 via 192.168.77.9"));
  expect((await linkIn(machine, victim)).mtu).toBe(576);
  impostor.tell({ address: FORGED, options: forged, rules: { RENEW: [{ nak: "\n<3>$(reboot)" }, {}] } });
  await untilLeased(scene, victim, FORGED);

  expect(await stateOf(scene)).toBe(host);
  expect(await stateOf(scene, other)).toBe(neighbour);
  expect(await Bun.file(marker).exists()).toBe(false);
  expect(service.log()).toContain("\\x0a<3>$(reboot)");
  expect(service.records().length).toBe(2);
  await net.check(other);
  const from = server.received().length;
  await server.until((all) => all.slice(from).some(({ ciaddr }) => ciaddr === "192.168.77.51"));
  await net.del(victim);
  await net.del(other);
  expect(service.records()).toEqual([]);
});

test("an address that is removed by hand comes back at renewal, with its routes", async () => {
  await using scene = await openScene({ address: ADDRESS, ...OFTEN });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  await machine.sh("ip -n c1 address flush dev eth0 scope global");
  expect(await addressesIn(segment, container)).toEqual([]);
  await untilLeased(scene, container, ADDRESS);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([`default via ${SERVER}`]);
  const all = await server.until((some) => some.filter(({ asked }) => asked === "RENEW").length >= 2);
  expect(all.filter(({ asked }) => asked === "DISCOVER").length).toBe(1);
  for (const { source, asked } of all) if (asked === "RENEW") expect(source).toBe(ADDRESS);
  await net.check(container);
  await net.del(container);
});

test("a container that lets no packet out to servers is renewed nevertheless, by the second try", async () => {
  const options = { 58: u32(2), 59: u32(14) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 16, options });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  const rule = "table ip own { chain out { type filter hook output priority 0; udp dport 67 drop; }; }";
  await machine.sh(`nft '${rule}'`, { in: container });
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp" });
  const acks = await untilTrue(() => framesOf(capture.frames(), "ACK"), (all) => all.length > 0);
  expect(acks[0]!.destination).toBe(ADDRESS);
  const requests = framesOf(capture.frames(), "REQUEST");
  expect(requests.map(({ source, destination }) => [source, destination])).toEqual([[ADDRESS, SERVER]]);
  expect(requests[0]!.to).not.toBe(BROADCAST);
  expect(server.received().filter(({ asked }) => asked === "DISCOVER").length).toBe(1);
  await net.del(container);
});

const meddlings: [what: string, commands: string][] = [
  ["renamed", "ip link set eth0 down; ip link set eth0 name other; ip link set other up"],
  ["deleted", "ip link del eth0"],
  ["replaced", "ip link del eth0; ip link add eth0 type veth peer name eth9; ip link set eth0 up"],
  ["moved to another namespace", "ip link set eth0 netns elsewhere"],
  ["set down", "ip link set eth0 down"],
];

test.concurrent.each(meddlings)(
  "a link that is %s: the service goes on, and DEL is clean",
  async (what, commands) => {
    await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8, options: { 58: u32(2) } });
    const { machine, server, service } = scene, net = service.network();
    await machine.container("elsewhere");
    const container = await machine.container("c1"), other = await machine.container("c2");
    await net.add(other);
    await untilLeased(scene, other, ADDRESS);
    const idle = () =>
      untilTrue(() => service.descriptors().filter((one) => one.startsWith("net:")).length, (open) => open <= 1);
    await idle();
    await net.add(container);
    await untilLeased(scene, container, "192.168.77.51");
    const early = server.received().length;
    await machine.sh(commands, { in: container });
    // The other one's renewals go on, past the end of the first one's lease.
    const renewals = (all: Received[]) =>
      all.slice(early).filter(({ asked, ciaddr }) => asked === "RENEW" && ciaddr === ADDRESS);
    await server.until((all) => renewals(all).length >= 3);
    // What has only the name of the link gets nothing.
    if (what === "replaced") expect(await addressesIn(scene.segment, container)).toEqual([]);
    await server.until((all) => renewals(all).length >= 6);
    expect(service.hasEnded).toBe(false);
    await net.del(container);
    await untilTrue(() => service.records().length, (count) => count === 1);
    const before = service.descriptors().length;
    await net.add(container);
    await untilLeased(scene, container, "192.168.77.51");
    await net.del(container);
    await net.del(other);
    await idle();
    await untilTrue(() => service.descriptors().length, (count) => count <= before);
    expect(service.records()).toEqual([]);
    expect(service.log()).not.toMatch(/^\s+at /m);
  },
);

test("DEL at once after the link is deleted: the server is told through the host's link", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 1000 });
  const { machine, server, service } = scene, container = await machine.container("c1"), net = service.network();
  await net.add(container);
  const { address: mac } = await linkIn(machine, container);
  await machine.sh("ip link del eth0", { in: container });
  await net.del(container);
  const all = await server.until((some) => some.some(({ kind }) => kind === "RELEASE"));
  expect(all.at(-1)).toMatchObject({ source: ADDRESS, ciaddr: ADDRESS, mac });
  expect(service.records()).toEqual([]);
});
