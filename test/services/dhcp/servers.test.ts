/** The servers that DHCP is tested with serve: a well-known client gets an address, and gives it back. */
import { expect, test } from "bun:test";
import { captureIn } from "../../support/dhcp/capture.ts";
import { dhclient6, udhcpc } from "../../support/dhcp/clients.ts";
import { serverBehindBridge, serverBehindMaster, serverBehindRelay } from "../../support/dhcp/link.ts";
import { kindOf } from "../../support/dhcp/message-name.ts";
import { OFFER4, OFFER6, value } from "../../support/dhcp/offer.ts";
import { FAR_OFFER4, startRelay } from "../../support/dhcp/relay.ts";
import { iscDhcpd, kea, serve4, SERVERS4, udhcpd } from "../../support/dhcp/servers-v4.ts";
import { Server } from "../../support/dhcp/server.ts";
import { advertise, dnsmasq6, serve6, SERVERS6 } from "../../support/dhcp/servers-v6.ts";
import { linkIn } from "../../support/wire.ts";
import { untilTrue } from "../../support/until-true.ts";

const inRange = /^192\.168\.77\.1[012]\d$/;

test.each(SERVERS4)("$name leases an address and takes it back", async (kind) => {
  await using segment = await serverBehindBridge();
  const server = await serve4(kind, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  const container = await segment.plug("c1");
  const client = await udhcpc(segment, container, ["-x", "hostname:web", "-x", "0x3d:00636c69656e74"]);
  expect(client.address).toMatch(inRange);
  const lease = await server.untilLease(client.address, "active");
  const { address: mac } = await linkIn(segment.machine, container);
  expect(lease).toMatchObject({ mac, hostName: "web" });
  if (kind.name !== "udhcpd") expect(lease.clientId).toBe("00636c69656e74");
  await client.release();
  await server.untilLease(client.address, "free");
});

test.each(SERVERS4)("$name stops, starts, forgets and moves its range", async (kind) => {
  await using segment = await serverBehindMaster();
  const server = await serve4(kind, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  const { address } = await udhcpc(segment, await segment.plug("c1"));
  await server.untilLease(address, "active");
  await server.stop();
  expect(await server.leases()).toMatchObject([{ address, state: "active" }]);
  await server.start();
  await server.untilLease(address, "active");
  await server.reconfigure({ range: ["192.168.77.200", "192.168.77.210"] }, { isEmpty: true });
  expect((await server.leases()).filter(({ state }) => state === "active")).toEqual([]);
  const other = await udhcpc(segment, await segment.plug("c2"));
  expect(other.address).toMatch(/^192\.168\.77\.2\d\d$/);
});

test.each(SERVERS4)("$name sends any option", async (kind) => {
  await using segment = await serverBehindBridge();
  const options = {
    6: value.addresses("192.168.77.1", "192.168.77.2"),
    15: value.text("example.com"),
    26: value.u16(1400),
    121: value.routes(["10.0.0.0/8", "192.168.77.9"], ["0.0.0.0/0", "192.168.77.1"]),
    224: "01",
  };
  const renewSeconds = 8, rebindSeconds = 12;
  await serve4(kind, segment.site, { ...OFFER4, routers: ["192.168.77.9"], renewSeconds, rebindSeconds, options });
  await using capture = await captureIn(segment, segment.site.namespace);
  await udhcpc(
    segment,
    await segment.plug("c1"),
    [6, 15, 26, 121, 224, 58, 59].flatMap((one) => ["-O", String(one)]),
  );
  const frames = await untilTrue(() => capture.frames(), (found) => found.some(({ dhcp }) => kindOf(dhcp) === "ACK"));
  const { dhcp } = frames.find(({ dhcp }) => kindOf(dhcp) === "ACK")!;
  const sent = Object.fromEntries([...dhcp!.options].map(([code, bytes]) => [code, bytes.toHex()]));
  expect(sent).toMatchObject({
    ...options,
    3: value.addresses("192.168.77.9"),
    58: value.u32(renewSeconds),
    59: value.u32(rebindSeconds),
  });
});

test.each([udhcpd, iscDhcpd, kea])("$name keeps an address that somebody else has", async (kind) => {
  await using segment = await serverBehindBridge();
  const address = "192.168.77.100", owner = await segment.plug("owner");
  await segment.machine.sh(`ip address add ${address}/24 dev eth0`, { in: owner });
  const server = await serve4(kind, segment.site, { range: [address, address], leaseSeconds: 1000 });
  // udhcpd asks by ARP itself; the others are told by the client.
  const client = ["busybox", "udhcpc", "-f", "-a", "-T", "1", "-i", "eth0", "-s", "/bin/true"];
  segment.start(await segment.plug("c1"), client, { log: `${segment.folder}/client` });
  await server.untilLease(address, "declined");
});

test.each([iscDhcpd, kea])("$name serves behind a relay", async (kind) => {
  await using segment = await serverBehindRelay();
  const server = await serve4(kind, segment.site, FAR_OFFER4);
  await startRelay(segment);
  const client = await udhcpc(segment, await segment.plug("c1"));
  expect(client.address).toMatch(/^192\.168\.78\.1[012]\d$/);
  await server.untilLease(client.address, "active");
});

test.each(SERVERS6)("$name leases an IPv6 address and takes it back", async (kind) => {
  await using segment = await serverBehindBridge();
  const server = await serve6(kind, segment.site);
  const client = await dhclient6(segment, await segment.plug("c1"));
  expect(client.address).toMatch(/^fd00:77::1[0-9a-f]{2}$/);
  expect((await server.untilLease(client.address, "active")).clientId).toMatch(/^0001/);
  await client.release();
  await server.untilLease(client.address, "free");
});

test.each(["slaac", "ra-stateless", "ra-names", "ra-only"] as const)("dnsmasq advertises with %s", async (mode) => {
  await using segment = await serverBehindBridge();
  await Server.open(dnsmasq6, segment.site, { ...OFFER6, mode });
  const container = await segment.plug("c1");
  const addresses = () => segment.machine.sh("ip -6 -o address show dev eth0 scope global", { in: container });
  await untilTrue(addresses, (text) => text.includes("fd00:77::"));
});

test("radvd gives a container an address of its prefix, a router and an MTU", async () => {
  await using segment = await serverBehindMaster();
  await advertise(segment.site, { mtu: 1400, nameServers: ["fd00:77::1"], routes: ["fd00:99::/64"] });
  const container = await segment.plug("c1");
  const addresses = () => segment.machine.sh("ip -6 -o address show dev eth0 scope global", { in: container });
  await untilTrue(addresses, (text) => text.includes("fd00:77::"));
  expect(await segment.machine.sh("cat /proc/sys/net/ipv6/conf/eth0/mtu", { in: container })).toBe("1400\n");
  expect(await segment.machine.sh("ip -6 route show default", { in: container })).toContain("proto ra");
});
