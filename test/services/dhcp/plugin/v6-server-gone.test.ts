/** DHCPv6 servers that go: another one takes over, or the lease ends and there is a new one when they come back. */
import { expect, test } from "bun:test";
import { attachV6 } from "../../../support/dhcp/attached.ts";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { first, messages6, option, REBIND, RENEW, SOLICIT } from "../../../support/dhcp/messages6.ts";
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

test.each(SERVERS)("$name: another server with the same leases takes over, and then is the one", async (kind) => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 30, validSeconds: 40, renewSeconds: 3, rebindSeconds: 6 };
  const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { container, net, ip } = await attachV6(segment, service);
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

test.each(SERVERS)(
  "$name: an address is gone when its lease is over, and there again when the server is",
  async (kind) => {
    await using segment = await serverBehindBridge();
    const times = { preferredSeconds: 8, validSeconds: 10, renewSeconds: 3, rebindSeconds: 5 };
    const server = await serve6(kind, segment.site, { ...OFFER6, ...times });
    await using service = await startService(segment);
    const { container, net, ip } = await attachV6(segment, service);
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
