/** Links that somebody floods: the service does a bounded amount of work for them, and goes on with everything else. */
import { expect, test } from "bun:test";
import { flood, type FloodKind, watchTurns } from "../../../support/dhcp/flood.ts";
import { forge } from "../../../support/dhcp/forged6.ts";
import { type BridgeSegment, serverBehindBridge } from "../../../support/dhcp/link.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, untilLeased } from "../../../support/dhcp/scene.ts";
import { serveScript, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { type Service, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ADDRESS = "192.168.77.50", ELSEWHERE = "192.168.77.90";
const ONLY_V6 = { ipv4: false, ipv6: true };
/** The service reads so much in one go, and after a message. */
const MOST_AT_ONCE = 8, MOST_PER_MESSAGE = 256;

/** Another network with a server of its own, which the flood does not reach. */
async function networkElsewhere(segment: BridgeSegment, service: Service) {
  const far = await segment.anotherSite("far", 9);
  await segment.machine.sh("ip link add br1 type bridge && ip link set br1 up && ip link set p-far master br1");
  await serveScript(far, { address: ELSEWHERE, leaseSeconds: 1000 });
  return service.network({ name: "elsewhere", bridge: "br1" });
}

async function servesElsewhere(segment: BridgeSegment, service: Service): Promise<void> {
  const net = await networkElsewhere(segment, service);
  for (const name of ["e1", "e2"]) {
    const container = await segment.machine.container(name);
    const { ips: [{ address }] } = await net.add(container);
    expect(address).toStartWith("192.168.77.9");
    await net.check(container);
  }
}

async function twoFloods(segment: BridgeSegment, kinds: readonly FloodKind[]) {
  const sites = [await segment.anotherSite("f1", 6), await segment.anotherSite("f2", 7)];
  return await Promise.all(kinds.map((kind, index) => flood(sites[index]!, kind)));
}

test.each(
  [
    ["of useless answers", ["v4", "v4"]],
    ["of useless answers and of those for others", ["v4", "v4 for others"]],
  ] as const,
)("two floods %s: others are served, and so is the flooded link's own slow server", async (_, kinds) => {
  const segment = await serverBehindBridge();
  await using _segment = segment;
  const { machine } = segment, server = await serveScript(segment.site, { address: ADDRESS, rules: { any: SILENT } });
  await using service = await startService(segment);
  await twoFloods(segment, kinds);
  const turns = await watchTurns(service);
  const container = await machine.container("c1"), net = service.network({}, { timeout: 100 });
  const adding = net.add(container);
  await server.until((all) => all.length >= 2);
  await servesElsewhere(segment, service);
  server.tell({ address: ADDRESS, rules: { any: { delayMs: 200 } } });
  expect((await adding).ips).toMatchObject([{ address: `${ADDRESS}/24` }]);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
  expect(turns.mostPerMessage()).toBeLessThanOrEqual(MOST_PER_MESSAGE);
});

test("a flood from always new senders: nobody is listened to until the next message; after it there is a lease", async () => {
  const segment = await serverBehindBridge();
  await using _segment = segment;
  const { machine } = segment, server = await serveScript(segment.site, { address: ADDRESS, rules: { any: SILENT } });
  await using service = await startService(segment);
  const [one, other] = await twoFloods(segment, ["v4 of many", "v4 of many"]);
  const turns = await watchTurns(service);
  const adding = service.network({}, { timeout: 100 }).add(await machine.container("c1"));
  await untilTrue(() => service.log(), (text) => text.includes("too many answers to one message"));
  await servesElsewhere(segment, service);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
  expect(turns.mostPerMessage()).toBe(MOST_PER_MESSAGE);
  await Promise.all([one!.stop(), other!.stop()]);
  server.tell({ address: ADDRESS });
  expect((await adding).ips).toMatchObject([{ address: `${ADDRESS}/24` }]);
});

test("a flood while a lease is renewed: the lease stays, and is renewed after it", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 60, options: { 58: value.u32(2) } });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  server.change({ rules: { RENEW: SILENT } });
  // Beside the server, where the renewals come by.
  const flooder = await flood(segment.site, "v4 of many");
  await untilTrue(() => service.log(), (text) => text.includes("too many answers to one message"));
  await servesElsewhere(segment, service);
  await net.check(container);
  await flooder.stop();
  const [{ valid: before } = { valid: 0 }] = await untilAddresses(segment, container, ([one]) => one !== undefined);
  server.change({ rules: {} });
  await untilAddresses(segment, container, ([one]) => one?.address === ADDRESS && one.valid > before);
});

test("floods of DHCPv6 answers: others are served, and so is the flooded link's own server", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  await twoFloods(segment, ["v6", "v6"]);
  const turns = await watchTurns(service);
  const container = await segment.machine.container("c1"), net = service.network({}, { ...ONLY_V6, timeout: 100 });
  const adding = net.add(container);
  await servesElsewhere(segment, service);
  await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["right"] });
  expect((await adding).ips).toMatchObject([{ address: "fd00:77::100/128" }]);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
  expect(turns.mostPerMessage()).toBeLessThanOrEqual(MOST_PER_MESSAGE);
});

test("DHCPv6 answers from always new senders: nobody is listened to until the next message", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const [one, other] = await twoFloods(segment, ["v6 of many", "v6 of many"]);
  const turns = await watchTurns(service);
  const adding = service.network({}, { ...ONLY_V6, timeout: 100 }).add(await segment.machine.container("c1"));
  await untilTrue(() => service.log(), (text) => text.includes("too many answers to one message"));
  await servesElsewhere(segment, service);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
  expect(turns.mostPerMessage()).toBe(MOST_PER_MESSAGE);
  await Promise.all([one!.stop(), other!.stop()]);
  await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["right"] });
  expect((await adding).ips).toMatchObject([{ address: "fd00:77::100/128" }]);
});

test.each(
  [["IPv4", ADDRESS, {}, `${ADDRESS}/24`], ["IPv6", "fd00:77::100", ONLY_V6, "fd00:77::100/128"]] as const,
)("neighbours that talk about the %s address without having it: it is free", async (_, about, family, address) => {
  await using segment = await serverBehindBridge();
  if (about === ADDRESS) await serveScript(segment.site, { address: ADDRESS });
  else await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["right"] });
  await using service = await startService(segment);
  await flood(await segment.anotherSite("f1", 6), "neighbours", about);
  const turns = await watchTurns(service), net = service.network({}, { ...family, acd: "full", timeout: 100 });
  expect((await net.add(await segment.machine.container("c1"))).ips).toMatchObject([{ address }]);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
});

test("a container that has given its link thousands of addresses: a renewal does not look at all of them", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { 58: value.u32(2) } });
  const { machine, service } = scene, container = await machine.container("c1");
  await service.network().add(container);
  await untilLeased(scene, container, ADDRESS);
  const others = Array.from({ length: 6000 }, (_, at) => `address add 10.9.${at >> 7}.${at & 127}/32 dev eth0`);
  await machine.sh("ip -batch -", { in: container, stdin: others.join("\n") });
  const turns = await watchTurns(service);
  // It comes back behind all others.
  for (let round = 0; round < 2; round++) {
    await machine.sh(`ip address del ${ADDRESS}/24 dev eth0`, { in: container });
    await untilTrue(() => machine.sh("ip -br address", { in: container }), (all) => all.includes(`${ADDRESS}/24`));
  }
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
});

test("a container whose addresses come and go while the service waits for the leased one: it learns of a few at a time", async () => {
  const segment = await serverBehindBridge();
  await using _segment = segment;
  await serveScript(segment.site, { address: ADDRESS });
  await using service = await startService(segment);
  // Nobody gives the link the address, so the service goes on waiting for it.
  const container = await segment.plug("c1");
  await service.network({ type: "dhcp" }).add(container);
  const turns = await watchTurns(service), { pid } = service;
  process.kill(pid, "SIGSTOP");
  const others = Array.from({ length: 100 }, (_, at) => `address add 10.9.0.${at}/32 dev eth0`);
  await segment.machine.sh("ip -batch -", { in: container, stdin: others.join("\n") });
  process.kill(pid, "SIGCONT");
  await servesElsewhere(segment, service);
  expect(turns.mostAtOnce()).toBeLessThanOrEqual(MOST_AT_ONCE);
});
