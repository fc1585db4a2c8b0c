/** DHCPv6 among others: forged answers, an address that another host has, and servers that give at once. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { forge, type Forgery } from "../../../support/dhcp/forged6.ts";
import { serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { ADVERTISE, DECLINE, kindsOf, REPLY, REQUEST, SOLICIT } from "../../../support/dhcp/messages6.ts";
import { OFFER6 } from "../../../support/dhcp/offer.ts";
import { dnsmasq6, iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ONLY_V6 = { ipv4: false, ipv6: true };
const LONG = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };
/** Not from the server to this client: passed over. The others are, and are of no use. */
const misdirected: Forgery[] = ["wrong xid", "wrong client", "no client", "no server"];
const forgeries: Forgery[] = [
  ...misdirected,
  ...["other association", "link-local", "multicast", "loopback", "unspecified"] as const,
  "preferred for longer than valid",
];

test("forged offers are not asked for, and the right one after them is", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const forger = await forge(segment.site, { ADVERTISE: forgeries, REPLY: ["right"] });
  const container = await segment.machine.container("c1"), net = service.network({}, { ...ONLY_V6, timeout: 3 });
  expect((await net.call("ADD", container)).json.msg).toContain("no more tries: IPv6: ");
  const kinds = await untilTrue(
    () => kindsOf(capture.frames()),
    (all) => all.filter((one) => one === ADVERTISE).length > 9,
  );
  expect(kinds).not.toContain(REQUEST);
  await forger.stop();
  await forge(segment.site, { ADVERTISE: [...forgeries, "right"], REPLY: ["right"] });
  const { ips } = await service.network({}, ONLY_V6).add(container);
  expect(ips).toMatchObject([{ address: "fd00:77::100/128" }]);
});

test("forged answers to a REQUEST give nothing, and the right one after them does", async () => {
  await using segment = await serverBehindMaster();
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const forger = await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["other server", ...forgeries] });
  const container = await segment.machine.container("c1"), net = service.network({}, { ...ONLY_V6, timeout: 3 });
  expect((await net.call("ADD", container)).json.msg).toContain("no more tries: IPv6: ");
  await untilTrue(() => kindsOf(capture.frames()), (all) => all.filter((one) => one === REPLY).length > 10);
  expect(service.records()).toEqual([]);
  await forger.stop();
  await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["other server", ...misdirected, "right"] });
  const { ips } = await service.network({}, ONLY_V6).add(container);
  expect(ips).toMatchObject([{ address: "fd00:77::100/128" }]);
  const found = await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  expect(found.map(({ address }) => address)).toEqual(["fd00:77::100"]);
});

test("an address that another host has is declined, and another one taken", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, owner = await segment.plug("owner");
  await machine.sh("ip -6 address add fd00:77::100/64 dev eth0 nodad", { in: owner });
  const server = await serve6(kea6, segment.site, { ...LONG, range: ["fd00:77::100", "fd00:77::101"] });
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const container = await machine.container("c1"), net = service.network({}, ONLY_V6);
  const { ips } = await net.add(container);
  expect(ips).toMatchObject([{ address: "fd00:77::101/128" }]);
  await server.untilLease("fd00:77::100", "declined");
  await server.untilLease("fd00:77::101", "active");
  await untilTrue(() => kindsOf(capture.frames()), (all) => all.includes(DECLINE));
});

test.each([iscDhcpd6, kea6])("$name: when it has no other address, ADD says who has it", async (kind) => {
  await using segment = await serverBehindBridge();
  const owner = await segment.plug("owner"), address = "fd00:77::100";
  await segment.machine.sh(`ip -6 address add ${address}/64 dev eth0 nodad`, { in: owner });
  const server = await serve6(kind, segment.site, { ...LONG, range: [address, address] });
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const container = await segment.machine.container("c1"), net = service.network({}, { ...ONLY_V6, timeout: 3 });
  expect((await net.call("ADD", container)).json.msg).toContain("no more tries: IPv6: ");
  await untilTrue(() => service.log(), (text) => text.includes(`another host has ${address}`));
  await untilTrue(() => kindsOf(capture.frames()), (all) => all.includes(DECLINE));
  await server.untilLease(address, "declined");
  // The server's word counts without probing.
  await server.reconfigure({}, { isEmpty: true });
  const { ips } = await service.network({}, { ...ONLY_V6, acd: "none" }).add(container);
  expect(ips).toMatchObject([{ address: `${address}/128` }]);
});

test("rapid commit: two messages, and the lease is there", async () => {
  await using segment = await serverBehindMaster();
  const server = await serve6(kea6, segment.site, { ...LONG, rapidCommit: true });
  await using service = await startService(segment);
  await using capture = await captureIn(segment, segment.site.namespace);
  const container = await segment.machine.container("c1"), net = service.network({}, ONLY_V6);
  const { ips: [{ address }] } = await net.add(container);
  await server.untilLease(address.split("/")[0], "active");
  expect(await untilTrue(() => kindsOf(capture.frames()), ({ length }) => length >= 2)).toEqual([SOLICIT, REPLY]);
});

test("four containers at once have four addresses", async () => {
  await using segment = await serverBehindBridge();
  await serve6(dnsmasq6, segment.site, LONG);
  await using service = await startService(segment);
  const net = service.network({}, ONLY_V6), list: string[] = [];
  const containers = await Promise.all(["c1", "c2", "c3", "c4"].map((name) => segment.machine.container(name)));
  for (const { ips } of await Promise.all(containers.map((one) => net.add(one)))) list.push(ips[0].address);
  expect(new Set(list).size).toBe(containers.length);
});
