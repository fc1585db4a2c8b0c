/** The plugin dhcp with Debian's servers: an address with its lease's lifetime, renewals by unicast, and given back. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { kindOf } from "../../../support/dhcp/message-name.ts";
import { OFFER4 } from "../../../support/dhcp/offer.ts";
import { serve4, SERVERS4 } from "../../../support/dhcp/servers-v4.ts";
import { addressesIn, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";
import { linkIn } from "../../../support/wire.ts";

const toHex = (text: string) => Buffer.from(text).toString("hex");

test.each(SERVERS4)("$name: an address, its lifetime, and given back", async (kind) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serve4(kind, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network({}, { hostname: "web" });
  const { ips: [{ address }] } = await net.add(container);
  const [ip] = address.split("/");
  const lease = await server.untilLease(ip, "active");
  expect(lease).toMatchObject({ mac: (await linkIn(machine, container)).address, hostName: "web" });
  // udhcpd goes by the MAC address alone.
  if (kind.name !== "udhcpd") expect(lease.clientId).toBe(`00${toHex("ctr-c1/net/eth0")}`);
  const [found] = await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  expect(found).toMatchObject({ address: ip, bits: 24 });
  expect(found!.valid).toBeLessThanOrEqual(1000);
  expect(found!.valid).toBeGreaterThan(800);
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  await net.check(container);
  await net.del(container);
  await server.untilLease(ip, "free");
  expect(service.records()).toEqual([]);
});

test.each(SERVERS4)("$name: renewed by unicast, and nobody hears that the port is closed", async (kind) => {
  await using segment = await serverBehindMaster();
  const { machine } = segment;
  const server = await serve4(kind, segment.site, {
    ...OFFER4,
    leaseSeconds: 20,
    renewSeconds: 4,
    rebindSeconds: 15,
  });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network();
  const { ips: [{ address }] } = await net.add(container);
  const [ip] = address.split("/");
  const begun = (await server.untilLease(ip, "active")).ends;
  await using capture = await captureIn(segment, segment.site.namespace);
  const acks = (frames: ReturnType<typeof capture.frames>) => frames.filter(({ dhcp }) => kindOf(dhcp) === "ACK");
  const frames = await untilTrue(() => capture.frames(), (found) => acks(found).length >= 2);
  const asked = frames.filter(({ dhcp }) => kindOf(dhcp) === "REQUEST");
  for (const frame of asked) {
    expect(frame).toMatchObject({ source: ip, destination: "192.168.77.1" });
    expect([50, 54].filter((option) => frame.dhcp!.options.has(option))).toEqual([]);
  }
  expect(new Set(asked.map(({ dhcp }) => dhcp!.xid)).size).toBe(asked.length);
  expect(frames.filter(({ type, icmp }) => type === 0x0800 && icmp !== undefined)).toEqual([]);
  await untilTrue(async () => (await server.leases())[0]?.ends ?? 0, (ends) => ends > begun);
  const [found] = await addressesIn(segment, container);
  // dnsmasq leases for no less than 120.
  expect(found!.valid).toBeLessThanOrEqual(120);
  // Nothing of the container is open between exchanges.
  await untilTrue(() => service.descriptors().filter((one) => one.startsWith("net:")).length, (open) => open <= 1);
  await net.del(container);
  await server.untilLease(ip, "free");
});
