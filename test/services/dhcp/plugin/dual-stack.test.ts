/** IPv4 and IPv6 in one ADD: which of them an ADD waits for, what a result can hold, and the way beyond the link. */
import { expect, test } from "bun:test";
import { serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { OFFER4, OFFER6, value } from "../../../support/dhcp/offer.ts";
import { dnsmasq, iscDhcpd, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { advertise, dnsmasq6, iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { PATCHBAY } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";

const LONG4 = { ...OFFER4, leaseSeconds: 1000 }, LONG6 = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };
const BOTH = { ipv6: true };
const [inRange4, inRange6] = [/^192\.168\.77\.1[012]\d\/24$/, /^fd00:77::1[0-9a-f]{2}\/128$/];
const FAR = "fd00:99::1";

test.each([serverBehindBridge, serverBehindMaster])("both in one ADD, by %p", async (open) => {
  await using segment = await open();
  const { machine, site } = segment;
  const server4 = await serve4(dnsmasq, site, LONG4), server6 = await serve6(iscDhcpd6, site, LONG6);
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network({}, BOTH);
  const { ips } = await net.add(container), [v4, v6] = ips.map((one: { address: string }) => one.address);
  expect(v4).toMatch(inRange4);
  expect(v6).toMatch(inRange6);
  const plain = (address: string) => address.split("/")[0]!;
  const areLimited = (all: { valid: number }[]) => all.length === 2 && all.every(({ valid }) => valid < Infinity);
  const found = await untilAddresses(segment, container, areLimited);
  expect(found.map(({ address, bits }) => `${address}/${bits}`).sort()).toEqual([v4, v6].sort());
  for (const { valid } of found) expect(valid).toBeLessThanOrEqual(1000);
  await server4.untilLease(plain(v4), "active");
  await server6.untilLease(plain(v6), "active");
  await net.check(container);
  const listed = await machine.sh(`${PATCHBAY} ipam list --dhcp-dir ${service.directory}`);
  for (const address of [v4, v6]) expect(listed).toContain(plain(address));
  await net.del(container);
  await server4.untilLease(plain(v4), "free");
  await server6.untilLease(plain(v6), "free");
});

test("routers say what is on the link and beyond: packets reach both", async () => {
  await using segment = await serverBehindBridge();
  const { machine, site } = segment;
  await machine.sh(`ip address add ${FAR}/128 dev lo; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding`, {
    in: site.namespace,
  });
  await serve6(kea6, site, LONG6);
  await advertise(site, {
    isManaged: true,
    isAutonomous: false,
    routerSeconds: 600,
    validSeconds: 600,
    preferredSeconds: 600,
  });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network({}, { ipv4: false, ipv6: true });
  const { ips: [{ address }] } = await net.add(container);
  const routes = () => machine.sh("ip -6 route show", { in: container });
  const text = await untilTrue(routes, (found) => /^default via fe80:.* proto ra/m.test(found));
  expect(text).toMatch(/^fd00:77::\/64 .*proto kernel/m);
  expect(await ping(machine, container, "fd00:77::1")).toBe(true);
  expect(await ping(machine, container, FAR)).toBe(true);
  // Nothing but the leased address: the prefix is not one to make addresses of.
  const found = await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  expect(found.map((one) => one.address)).toEqual([address.split("/")[0]]);
});

test("dnsmasq leases and is the router: packets flow beyond it", async () => {
  await using segment = await serverBehindMaster();
  const { machine, site } = segment;
  await machine.sh(`ip address add ${FAR}/128 dev lo; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding`, {
    in: site.namespace,
  });
  await serve6(dnsmasq6, site, LONG6);
  await using service = await startService(segment);
  const container = await machine.container("c1");
  await service.network({}, { ipv4: false, ipv6: true }).add(container);
  await untilTrue(
    () => machine.sh("ip -6 route show default", { in: container }),
    (text) => text.includes("proto ra"),
  );
  expect(await ping(machine, container, FAR)).toBe(true);
});

test("only IPv4 is required: ADD has it, and the IPv6 address comes when its server does", async () => {
  await using segment = await serverBehindBridge();
  await serve4(iscDhcpd, segment.site, LONG4);
  await using service = await startService(segment);
  const container = await segment.machine.container("c1");
  const net = service.network({}, { ...BOTH, required: ["ipv4"] }), { ips } = await net.add(container);
  expect(ips.map((one: { address: string }) => one.address)).toEqual([expect.stringMatching(inRange4)]);
  const server6 = await serve6(iscDhcpd6, segment.site, LONG6);
  const isThere = ({ address }: { address: string }) => address.startsWith("fd00:77::");
  const found = await untilAddresses(segment, container, (all) => all.some(isThere));
  const late = found.find(isThere)!;
  expect(late.bits).toBe(128);
  expect(late.valid).toBeLessThanOrEqual(1000);
  await server6.untilLease(late.address, "active");
  await net.check(container);
  await net.del(container);
  await server6.untilLease(late.address, "free");
});

test("only IPv6 is required: the IPv4 address comes later", async () => {
  await using segment = await serverBehindMaster();
  await serve6(kea6, segment.site, LONG6);
  await using service = await startService(segment);
  const container = await segment.machine.container("c1");
  const net = service.network({}, { ...BOTH, required: ["ipv6"] }), { ips } = await net.add(container);
  expect(ips.map((one: { address: string }) => one.address)).toEqual([expect.stringMatching(inRange6)]);
  const server4 = await serve4(iscDhcpd, segment.site, LONG4);
  const isThere = ({ address }: { address: string }) => address.startsWith("192.168.77.");
  const late = (await untilAddresses(segment, container, (all) => all.some(isThere))).find(isThere)!;
  expect(late.valid).toBeLessThanOrEqual(1000);
  await server4.untilLease(late.address, "active");
});

test("an error names what is missing, and what there was is given back", async () => {
  await using segment = await serverBehindBridge();
  const server6 = await serve6(iscDhcpd6, segment.site, LONG6);
  await using service = await startService(segment);
  const container = await segment.machine.container("c1"), net = service.network({}, { ...BOTH, timeout: 4 });
  const first = (await net.call("ADD", container)).json;
  expect(first.msg).toContain("no more tries");
  expect(first.msg).not.toContain("IPv6");
  await untilTrue(() => server6.leases(), (all) => all.length > 0 && all.every(({ state }) => state === "free"));
  await server6.stop();
  const { json } = await net.call("ADD", container);
  expect(json.msg).toMatch(/no more tries: .*; IPv6: no server has answered/);
  expect(service.records()).toEqual([]);
});

test.each(["0.1.0", "0.2.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])(
  "version %s of the configuration",
  async (cniVersion) => {
    await using segment = await serverBehindBridge();
    await serve4(dnsmasq, segment.site, { ...LONG4, options: { 6: value.addresses("192.168.77.53") } });
    await serve6(iscDhcpd6, segment.site, { ...LONG6, nameServers: ["fd00:77::53"] });
    await using service = await startService(segment);
    const container = await segment.machine.container("c1"), net = service.network({ cniVersion }, BOTH);
    const result = await net.add(container);
    expect(result.cniVersion).toBe(cniVersion);
    expect(result.dns.nameservers).toEqual(["192.168.77.53", "fd00:77::53"]);
    if (cniVersion < "0.3.0") {
      expect(result).toMatchObject({
        ip4: { ip: expect.stringMatching(inRange4), gateway: "192.168.77.1" },
        ip6: { ip: expect.stringMatching(inRange6) },
      });
    } else expect(result.ips.map((one: { address: string }) => one.address).length).toBe(2);
    await net.del(container);
    expect(service.records()).toEqual([]);
  },
);
