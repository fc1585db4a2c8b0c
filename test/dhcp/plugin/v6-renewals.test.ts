/** The life of a DHCPv6 lease with Debian's servers: renewed, rebound, forgotten by the server, expired, and new again. */
import { expect, test } from "bun:test";
import { captureIn } from "../../support/dhcp/capture.ts";
import { type BridgeSegment, serverBehindBridge } from "../../support/dhcp/link.ts";
import { first, messages6, option, REBIND, RENEW, REPLY, SOLICIT } from "../../support/dhcp/messages6.ts";
import { OFFER6 } from "../../support/dhcp/offer.ts";
import type { Server } from "../../support/dhcp/server.ts";
import { iscDhcpd6, kea6, serve6 } from "../../support/dhcp/servers-v6.ts";
import { addressesIn, type Service, startService, untilAddresses } from "../../support/dhcp/service.ts";
import { untilTrue } from "../../support/resident-status.ts";

// dnsmasq lets nobody renew within a minute.
const SERVERS = [iscDhcpd6, kea6], ONLY_V6 = { ipv4: false, ipv6: true };

async function attach(segment: BridgeSegment, service: Service) {
  const container = await segment.machine.container("c1"), net = service.network({}, ONLY_V6);
  const { ips: [{ address }] } = await net.add(container);
  await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  return { container, net, ip: address.split("/")[0] as string };
}

/** Those of this lease that the server has put off. */
async function untilLater<Offer>(server: Server<Offer>, address: string, than: number): Promise<void> {
  await untilTrue(() => server.leases(), (all) => all.some((one) => one.address === address && one.ends > than));
}

test.each(SERVERS)(
  "$name: renewals put off the end of the lease, each a new exchange with this server",
  async (kind) => {
    await using segment = await serverBehindBridge();
    const times = { preferredSeconds: 20, validSeconds: 30, renewSeconds: 3, rebindSeconds: 18 };
    const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
    await using service = await startService(segment);
    await using capture = await captureIn(segment, segment.site.namespace);
    const { container, net, ip } = await attach(segment, service);
    const begun = (await server.untilLease(ip, "active")).ends;
    const all = await untilTrue(
      () => messages6(capture.frames()),
      (found) =>
        found.filter(({ message }) => message.type === RENEW).length >= 2 && found.at(-1)!.message.type === REPLY,
    );
    const renewals = all.filter(({ message }) => message.type === RENEW);
    expect(new Set(renewals.map(({ message }) => message.xid)).size).toBe(renewals.length);
    for (const { message, source, destination } of renewals) {
      expect(first(message.options, option.server)).toBeDefined();
      expect(source).toMatch(/^fe80:/);
      expect(destination).toBe("ff02::1:2");
    }
    await untilLater(server, ip, begun);
    const [found] = await addressesIn(segment, container);
    expect(found!.address).toBe(ip);
    expect(found!.valid).toBeLessThanOrEqual(30);
    expect(found!.preferred).toBeLessThanOrEqual(20);
    await net.check(container);
    await net.del(container);
    await server.untilLease(ip, "free");
  },
);

test.each(SERVERS)("$name: another server with the same leases takes over, and then is the one", async (kind) => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 30, validSeconds: 40, renewSeconds: 3, rebindSeconds: 6 };
  const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { container, net, ip } = await attach(segment, service);
  const { ends } = await server.untilLease(ip, "active");
  await server.stop();
  // Kea's identity comes from the link; ISC's is in the file.
  await segment.machine.sh("ip -n server link set s0 address 02:00:00:00:77:77");
  if (kind === iscDhcpd6) server.changeLeases((text) => text.replace(/^server-duid .*$/gm, ""));
  await using capture = await captureIn(segment, segment.site.namespace);
  await server.start();
  await untilLater(server, ip, ends);
  const { before, after } = await untilTrue(() => {
    const all = messages6(capture.frames()), rebound = all.findIndex(({ message }) => message.type === REBIND);
    const from = rebound < 0 ? all.length : rebound;
    const renewals = (part: typeof all) => part.filter(({ message }) => message.type === RENEW);
    return { before: renewals(all.slice(0, from)), after: renewals(all.slice(from)) };
  }, ({ after }) => after.length > 0);
  const serverOf = ({ message }: (typeof before)[number]) => first(message.options, option.server)!.toHex();
  expect(before.map(serverOf)).not.toContain(serverOf(after[0]!));
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ip]);
  await net.del(container);
  await server.untilLease(ip, "free");
});

test.each(SERVERS)("$name: has forgotten the lease, and gives one again", async (kind) => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 20, validSeconds: 30, renewSeconds: 3, rebindSeconds: 18 };
  const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { container, ip } = await attach(segment, service);
  await server.untilLease(ip, "active");
  await server.reconfigure({}, { isEmpty: true });
  expect((await server.leases()).filter(({ state }) => state === "active")).toEqual([]);
  const [lease] = await untilTrue(() => server.leases(), (all) => all.some(({ state }) => state === "active"));
  const has = (addresses: { address: string }[]) =>
    addresses.length === 1 && addresses[0]!.address === lease!.address;
  await untilAddresses(segment, container, has);
});

test.each(SERVERS)(
  "$name: an address is gone when its lease is over, and there again when the server is",
  async (kind) => {
    await using segment = await serverBehindBridge();
    const times = { preferredSeconds: 8, validSeconds: 10, renewSeconds: 3, rebindSeconds: 5 };
    const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
    await using service = await startService(segment);
    const { container, net, ip } = await attach(segment, service);
    await server.untilLease(ip, "active");
    await server.stop();
    await untilAddresses(segment, container, (addresses) => addresses.length === 0);
    const [link] = JSON.parse(await segment.machine.sh("ip -j link show dev eth0", { in: container }));
    expect(link.flags).toContain("UP");
    await untilTrue(() => service.log(), (text) => text.includes("the lease has expired"));
    await using capture = await captureIn(segment, segment.site.namespace);
    await server.start();
    const [again] = await untilAddresses(segment, container, (addresses) => addresses.length === 1);
    expect(again!.valid).toBeLessThanOrEqual(10);
    await server.untilLease(again!.address, "active");
    expect(messages6(capture.frames()).map(({ message }) => message.type)).toContain(SOLICIT);
    await net.del(container);
    await server.untilLease(again!.address, "free");
  },
);
