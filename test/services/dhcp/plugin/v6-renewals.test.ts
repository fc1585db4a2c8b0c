/** DHCPv6 leases renewed with Debian's servers, also with one that has forgotten them. */
import { expect, test } from "bun:test";
import { attachV6 } from "../../../support/dhcp/attached.ts";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { first, messages6, option, RENEW, REPLY } from "../../../support/dhcp/messages6.ts";
import { OFFER6 } from "../../../support/dhcp/offer.ts";
import type { Server } from "../../../support/dhcp/server.ts";
import { iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { addressesIn, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

// dnsmasq lets nobody renew within a minute.
const SERVERS = [iscDhcpd6, kea6];

/** The messages of this lease that the server has put off. */
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
    const { container, net, ip } = await attachV6(segment, service);
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

test.each(SERVERS)("$name: has forgotten the lease, and gives one again", async (kind) => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 20, validSeconds: 30, renewSeconds: 3, rebindSeconds: 18 };
  const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { container, ip } = await attachV6(segment, service);
  await server.untilLease(ip, "active");
  await server.reconfigure({}, { isEmpty: true });
  expect((await server.leases()).filter(({ state }) => state === "active")).toEqual([]);
  const [lease] = await untilTrue(() => server.leases(), (all) => all.some(({ state }) => state === "active"));
  const has = (addresses: { address: string }[]) =>
    addresses.length === 1 && addresses[0]!.address === lease!.address;
  await untilAddresses(segment, container, has);
});
