/** DHCPv6 on links that are not as they usually are: IPv6 is off, has no address to send from, or loses the leased one. */
import { expect, test } from "bun:test";
import { serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { OFFER6 } from "../../../support/dhcp/offer.ts";
import { iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";

const ONLY_V6 = { ipv4: false, ipv6: true };
const LONG = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };
const isThere = (address: string) => (all: { address: string; valid: number }[]) =>
  all.some((one) => `${one.address}/128` === address && one.valid < Infinity);

test.each([serverBehindBridge, serverBehindMaster])(
  "IPv6 is off in the container: it is on for this link, %p",
  async (open) => {
    await using segment = await open();
    const server = await serve6(iscDhcpd6, segment.site, LONG);
    await using service = await startService(segment);
    const container = await segment.machine.container("c1");
    await segment.machine.sh(
      `for one in all default; do echo 1 >/proc/sys/net/ipv6/conf/$one/disable_ipv6; done`,
      { in: container },
    );
    const net = service.network({}, ONLY_V6), { ips: [{ address }] } = await net.add(container);
    await untilAddresses(segment, container, isThere(address));
    await net.del(container);
    await server.untilLease(address.split("/")[0], "free");
  },
);

test("a link that makes itself no address: ADD says what is missing", async () => {
  await using segment = await serverBehindMaster();
  await serve6(iscDhcpd6, segment.site, LONG);
  await using service = await startService(segment);
  const container = await segment.machine.container("c1");
  await segment.machine.sh("echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode", { in: container });
  const { json } = await service.network({}, { ...ONLY_V6, timeout: 2 }).call("ADD", container);
  expect(json.msg).toContain("eth0 has no link-local address yet");
  expect(service.records()).toEqual([]);
});

const losses = [
  ["deleted", "ip -6 address flush dev eth0 scope global"],
  ["gone with the link, which comes up again", "ip link set eth0 down; ip link set eth0 up"],
] as const;

test.each(losses)("an address that was %s is there again with the next renewal", async (_, how) => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 40, validSeconds: 60, renewSeconds: 3, rebindSeconds: 50 };
  await serve6(kea6, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const container = await segment.machine.container("c1"), net = service.network({}, ONLY_V6);
  const { ips: [{ address }] } = await net.add(container);
  await untilAddresses(segment, container, isThere(address));
  await segment.machine.sh(how, { in: container });
  await untilAddresses(segment, container, isThere(address));
  await net.check(container);
});
