/** The plugin dhcp below every main plugin whose link can reach a server: ADD, CHECK, DEL, packets. */
import { expect, test } from "bun:test";
import { type Segment, serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { OFFER4, OFFER6, value } from "../../../support/dhcp/offer.ts";
import { dnsmasq, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { iscDhcpd6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { addressesIn, type AddressOfLink, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { ping } from "../../../support/traffic.ts";
import { linkIn } from "../../../support/wire.ts";

const NAME_SERVERS = { 6: value.addresses("192.168.77.53") };
const LONG4 = { ...OFFER4, leaseSeconds: 1000, options: NAME_SERVERS },
  LONG6 = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };
const BOTH = { ipv6: true };

/** A network card of the machine that is on the server's network. */
async function spareCard(segment: Segment): Promise<void> {
  await segment.machine.sh(`
    ip link add card type veth peer name p-card
    ip link set p-card master br0 up`);
}

const areLimited = (all: AddressOfLink[]) => all.length === 2 && all.every(({ valid }) => valid < Infinity);

const subjects: [name: string, open: () => Promise<Segment>, conf: Record<string, unknown> & { type: string }][] = [
  ["bridge", serverBehindBridge, { type: "bridge", bridge: "br0" }],
  ["macvlan", serverBehindMaster, { type: "macvlan", master: "m0" }],
  ["macvlan with an MTU", serverBehindMaster, { type: "macvlan", master: "m0", mode: "private", mtu: 1400 }],
  ["host-device", serverBehindBridge, { type: "host-device", device: "card" }],
];

test.each(subjects)("%s: both families, from ADD to DEL", async (_, open, conf) => {
  await using segment = await open();
  const { machine, site } = segment, server4 = await serve4(dnsmasq, site, LONG4);
  const server6 = await serve6(iscDhcpd6, site, LONG6);
  if (conf.type === "host-device") await spareCard(segment);
  await using service = await startService(segment);
  const net = service.network(conf, BOTH), container = await machine.container("c1");
  const { ips, interfaces, dns } = await net.add(container);
  expect(dns.nameservers).toContain("192.168.77.53");
  for (const { interface: index } of ips) expect(interfaces[index].sandbox).toBe(container.netnsPath);
  const [v4, v6] = ips.map((one: { address: string }) => one.address.split("/")[0]);
  expect((await untilAddresses(segment, container, areLimited)).map(({ address }) => address).sort())
    .toEqual([v4, v6].sort());
  expect((await server4.untilLease(v4, "active")).mac).toBe((await linkIn(machine, container)).address);
  await server6.untilLease(v6, "active");
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  await machine.sh(`ip -6 route add fd00:77::/64 dev eth0`, { in: container });
  expect(await ping(machine, container, "fd00:77::1")).toBe(true);
  await net.check(container);
  await machine.sh(`ip address del ${v4}/24 dev eth0`, { in: container });
  expect((await net.call("CHECK", container)).code).not.toBe(0);
  await net.del(container);
  expect(await linkIn(machine, container)).toBeUndefined();
  await server4.untilLease(v4, "free");
  await server6.untilLease(v6, "free");
  expect(service.records()).toEqual([]);
});

test.each(["ptp", "tap"])("%s leads to no server: ADD fails soon, says why, and leaves nothing", async (type) => {
  await using segment = await serverBehindBridge();
  await serve4(dnsmasq, segment.site, LONG4);
  await using service = await startService(segment);
  const container = await segment.machine.container("c1");
  const links = () => segment.machine.sh("ls /sys/class/net");
  const before = await links();
  for (const change of [{}, BOTH]) {
    const { code, json } = await service.network({ type, bridge: undefined }, { ...change, timeout: 2 }).call(
      "ADD",
      container,
    );
    expect(code).not.toBe(0);
    expect(json.msg).toContain("no more tries: ");
    expect(json.msg.includes("IPv6: ")).toBe("ipv6" in change);
    expect(await linkIn(segment.machine, container)).toBeUndefined();
  }
  expect(await links()).toBe(before);
  expect(service.records()).toEqual([]);
});

test("a second attachment of a container has leases of its own", async () => {
  await using segment = await serverBehindMaster();
  const server4 = await serve4(dnsmasq, segment.site, LONG4), server6 = await serve6(iscDhcpd6, segment.site, LONG6);
  await using service = await startService(segment);
  const net = service.network({}, BOTH), container = await segment.machine.container("c1");
  const list: string[] = [];
  for (const ifName of ["eth0", "eth1"]) {
    const { ips } = await net.add(container, { ifName });
    for (const { address } of ips) list.push(address.split("/")[0]);
  }
  expect(new Set(list).size).toBe(4);
  await net.del(container, { ifName: "eth1" });
  await server4.untilLease(list[2]!, "free");
  await server6.untilLease(list[3]!, "free");
  await server4.untilLease(list[0]!, "active");
  await server6.untilLease(list[1]!, "active");
  expect((await addressesIn(segment, container)).map(({ address }) => address).sort()).toEqual(
    list.slice(0, 2).sort(),
  );
});
