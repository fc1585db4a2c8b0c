/** The plugin dhcp with Debian's DHCPv6 servers: an address with both lifetimes, and given back, wherever its link is. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { type BridgeSegment, serverBehindBridge } from "../../../support/dhcp/link.ts";
import { kindsOf, RENEW, REPLY } from "../../../support/dhcp/messages6.ts";
import { OFFER6 } from "../../../support/dhcp/offer.ts";
import { serve6, SERVERS6 } from "../../../support/dhcp/servers-v6.ts";
import { addressesIn, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import type { Network } from "../../../support/network.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ONLY_V6 = { ipv4: false, ipv6: true }, inRange = /^fd00:77::1[0-9a-f]{2}$/;
const LONG = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };

test.each(SERVERS6)("$name: an address with both lifetimes, DNS, and given back", async (kind) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const dns = { nameServers: ["fd00:77::53", "fd00:77::54"], searchList: ["example.com"] };
  const server = await serve6(kind, segment.site, { ...LONG, ...dns });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network({}, ONLY_V6);
  const result = await net.add(container);
  expect(result).toMatchObject({ dns: { nameservers: dns.nameServers, search: dns.searchList } });
  expect(result.ips).toHaveLength(1);
  expect(result.routes).toBeUndefined();
  const [ip, bits] = result.ips[0].address.split("/");
  expect(ip).toMatch(inRange);
  expect(bits).toBe("128");
  // A DUID of the kind UUID.
  expect((await server.untilLease(ip, "active")).clientId).toMatch(/^0004[0-9a-f]{32}$/);
  const [found] = await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  expect(found).toMatchObject({ address: ip, bits: 128 });
  expect(found!.valid).toBeLessThanOrEqual(1000);
  expect(found!.valid).toBeGreaterThan(800);
  expect(found!.preferred).toBeLessThanOrEqual(kind.name === "dnsmasq6" ? 1000 : 600);
  expect(found!.preferred).toBeGreaterThan(400);
  const listed = await machine.sh("ip -6 -o address show dev eth0 scope global", { in: container });
  expect(listed).not.toMatch(/tentative|dadfailed/);
  await net.check(container);
  // Nothing of the container is open when nothing is awaited.
  await untilTrue(() => service.descriptors().filter((one) => one.startsWith("net:")).length, (open) => open <= 1);
  await net.del(container);
  await server.untilLease(ip, "free");
  expect(service.records()).toEqual([]);
});

async function addOne({ machine }: BridgeSegment, net: Network) {
  const container = await machine.container("c1"), { ips: [{ address }] } = await net.add(container);
  return { container, ip: address.split("/")[0] as string };
}

test.each(SERVERS6)("$name: given back through the host when the namespace went first", async (kind) => {
  await using segment = await serverBehindBridge();
  const server = await serve6(kind, segment.site, LONG);
  await using service = await startService(segment);
  const net = service.network({}, ONLY_V6), { container, ip } = await addOne(segment, net);
  await server.untilLease(ip, "active");
  await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  await segment.machine.removeContainer(container);
  await net.del(container);
  await server.untilLease(ip, "free");
  expect(service.records()).toEqual([]);
});

test.each(SERVERS6)("$name: given back when the service comes up again", async (kind) => {
  await using segment = await serverBehindBridge();
  const server = await serve6(kind, segment.site, LONG);
  await using service = await startService(segment);
  const net = service.network({}, ONLY_V6), { container, ip } = await addOne(segment, net);
  await server.untilLease(ip, "active");
  await service.stop("SIGKILL");
  await net.del(container);
  expect(await addressesOf(segment, "c1")).toEqual("");
  await server.untilLease(ip, "active");
  await service.start();
  await server.untilLease(ip, "free");
  await untilTrue(() => service.records(), (records) => records.length === 0);
});

async function addressesOf({ machine }: BridgeSegment, name: string): Promise<string> {
  return await machine.sh(`ip -n ${name} -6 -o address show scope global`);
}

test("no answer to a SOLICIT: ADD says so, and nothing stays", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const container = await segment.machine.container("c1");
  const { json } = await service.network({}, { ...ONLY_V6, timeout: 2 }).call("ADD", container);
  expect(json.msg).toContain("no more tries: IPv6: no server has answered");
  expect(service.records()).toEqual([]);
  expect(await segment.machine.sh("ip -o link show", { in: container })).not.toContain("eth0");
});

test("a lease outlives a killed service: no SOLICIT, the address stays", async () => {
  await using segment = await serverBehindBridge();
  const server = await serve6(SERVERS6[2]!, segment.site, {
    ...OFFER6,
    validSeconds: 60,
    renewSeconds: 4,
    rebindSeconds: 50,
  });
  await using service = await startService(segment);
  const net = service.network({}, ONLY_V6), { container, ip } = await addOne(segment, net);
  const before = await server.untilLease(ip, "active");
  await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  await using capture = await captureIn(segment, segment.site.namespace);
  await service.restart("SIGKILL");
  await untilTrue(
    () => server.leases(),
    (leases) => leases.some((one) => one.address === ip && one.ends > before.ends),
  );
  const kinds = await untilTrue(
    () => kindsOf(capture.frames()),
    (found) => [RENEW, REPLY].every((kind) => found.includes(kind)),
  );
  expect(new Set(kinds)).toEqual(new Set([RENEW, REPLY]));
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ip]);
});
