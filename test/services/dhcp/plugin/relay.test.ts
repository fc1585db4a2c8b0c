/** A server behind a relay: renewals and releases go straight to it. And one client id for both families. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge, serverBehindRelay } from "../../../support/dhcp/link.ts";
import { kindOf } from "../../../support/dhcp/message-name.ts";
import { OFFER4, OFFER6 } from "../../../support/dhcp/offer.ts";
import { FAR_OFFER4, startRelay } from "../../../support/dhcp/relay.ts";
import { iscDhcpd, kea, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";

test.each([iscDhcpd, kea])("$name behind a relay: renewed and given back without the relay", async (kind) => {
  await using segment = await serverBehindRelay();
  const { machine } = segment, times = { leaseSeconds: 30, renewSeconds: 4, rebindSeconds: 25 };
  const server = await serve4(kind, segment.site, { ...FAR_OFFER4, ...times });
  const relay = await startRelay(segment);
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const container = await machine.container("c1"), net = service.network();
  const { ips: [{ address, gateway }] } = await net.add(container), [ip] = address.split("/");
  expect(ip).toMatch(/^192\.168\.78\.1[012]\d$/);
  expect(gateway).toBe("192.168.78.1");
  const { ends } = await server.untilLease(ip, "active");
  await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  // Nothing that is broadcast arrives any more.
  await relay.stop();
  await untilTrue(() => server.leases(), (all) => all.some((one) => one.address === ip && one.ends > ends));
  await net.check(container);
  await net.del(container);
  await server.untilLease(ip, "free");
  const frames = await untilTrue(() => capture.frames(), (all) => all.some(({ dhcp }) => kindOf(dhcp) === "RELEASE"));
  const direct = frames.filter(({ source, dhcp }) => dhcp !== undefined && source === ip);
  const kinds = new Set(direct.map(({ dhcp }) => kindOf(dhcp)));
  expect(kinds).toEqual(new Set(["REQUEST", "RELEASE"]));
  for (const { destination } of direct) expect(destination).toBe("192.168.77.1");
});

const pairs = [["ISC", iscDhcpd, iscDhcpd6], ["Kea", kea, kea6]] as const;

test.each(pairs)("%s: the client id `duid` says that both leases are of one container", async (_, kind4, kind6) => {
  await using segment = await serverBehindBridge();
  const server4 = await serve4(kind4, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  const server6 = await serve6(kind6, segment.site, { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 });
  await using service = await startService(segment);
  const net = service.network({}, { ipv6: true, clientId: "duid" });
  const container = await segment.machine.container("c1"), { ips } = await net.add(container);
  const [v4, v6] = ips.map((one: { address: string }) => one.address.split("/")[0]);
  const { clientId } = await server4.untilLease(v4, "active");
  const { clientId: duid } = await server6.untilLease(v6, "active");
  expect(duid).toMatch(/^0004[0-9a-f]{32}$/);
  // The kind 255 and the association's four bytes are before it.
  expect(clientId).toMatch(/^ff/);
  expect(clientId!.slice(10)).toBe(duid!);
  await net.del(container);
  await server4.untilLease(v4, "free");
  await server6.untilLease(v6, "free");
});
