/** The plugin dhcp with answers that are not from its server, or not for it: they change nothing. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { framesOf, openScene, routesIn, untilLeased } from "../../../support/dhcp/scene.ts";
import type { Rule } from "../../../support/dhcp/script.ts";
import { serveScript } from "../../../support/dhcp/scripted-server.ts";
import { addressesIn } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ADDRESS = "192.168.77.50", SERVER = "192.168.77.1", ROGUE_ADDRESS = "192.168.77.66", ROGUE = "192.168.77.6";
const FORGED_MAC = "02:00:00:00:00:99", STRANGER = value.text("somebody");

test.concurrent.each(
  [["servers", { servers: [SERVER] }], ["denyServers", { denyServers: [ROGUE] }]] as const,
)("%s: of two servers, the one that is allowed", async (_, ipam) => {
  // It is the slower one.
  await using scene = await openScene({ address: ADDRESS, rules: { DISCOVER: { delayMs: 300 } } });
  const { segment, machine, server, service } = scene;
  const rogue = await serveScript(await segment.anotherSite("rogue", 6), { address: ROGUE_ADDRESS });
  const container = await machine.container("c1"), net = service.network({}, ipam);
  await net.add(container);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ADDRESS]);
  // The broadcast with which the other server's offer is taken.
  const heard = await rogue.until((all) => all.some(({ kind }) => kind === "REQUEST"));
  expect(heard.at(-1)!.options[54]).toBe(value.addresses(SERVER));
  expect(service.log()).toContain(`server ${ROGUE} is not allowed`);
  await net.del(container);
  await server.until((all) => all.at(-1)!.kind === "RELEASE");
});

test("only servers that are not allowed: an error that says so", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { denyServers: [SERVER], timeout: 4 });
  const { code, json } = await net.call("ADD", container);
  expect(code).toBe(1);
  expect(json.msg).toContain(`server ${SERVER} is not allowed`);
  expect(new Set(server.received().map(({ kind }) => kind))).toEqual(new Set(["DISCOVER"]));
});

const forgedNak = (change: Rule): Rule => ({ nak: "forged", ...change });
const ofRogue = { 54: value.addresses(ROGUE), 3: value.addresses(ROGUE) };
const forgedOptions = { 3: value.addresses(ROGUE) };

/** To another client, or to another exchange. */
const misdirected: Rule[] = [
  { addToXid: 1, options: forgedOptions },
  { mac: FORGED_MAC, options: forgedOptions },
  { options: { ...forgedOptions, 61: STRANGER } },
];
const unusable: Rule[] = [
  { options: { ...forgedOptions, 54: null } },
  { options: { ...forgedOptions, 54: value.addresses("224.0.0.1") } },
  { options: { ...forgedOptions, 1: null } },
  { options: { ...forgedOptions, 1: value.addresses("255.0.255.0") } },
  { options: { ...forgedOptions, 51: value.u32(0) } },
  { address: SERVER, options: forgedOptions },
];
const notAsked: Rule[] = [{ address: ROGUE_ADDRESS, options: forgedOptions }];
const refusals: Rule[] = [
  forgedNak({ addToXid: 1 }),
  forgedNak({ mac: FORGED_MAC }),
  forgedNak({ options: { 61: STRANGER } }),
  forgedNak({ options: { 54: value.addresses(ROGUE) } }),
  forgedNak({ options: { 54: null } }),
];
/** The true answer comes behind the forged ones. */
const behind = (before: readonly Rule[]): Rule => ({ before, delayMs: 100 });

test("forged answers at ADD", async () => {
  await using scene = await openScene({
    address: ADDRESS,
    rules: {
      DISCOVER: behind([...misdirected, ...unusable]),
      REQUEST: behind([...misdirected, ...unusable, ...notAsked, { options: ofRogue }, ...refusals]),
    },
  });
  const { segment, machine, server, service } = scene;
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp" });
  const container = await machine.container("c1"), net = service.network();
  const { ips, routes } = await net.add(container);
  expect(ips).toEqual([{ address: `${ADDRESS}/24`, gateway: SERVER, interface: 2 }]);
  expect(routes.map(({ gw }: { gw: string }) => gw)).toEqual([SERVER]);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ADDRESS]);
  expect(await routesIn(scene, container)).toEqual([`default via ${SERVER}`]);
  const requests = server.received().filter(({ kind }) => kind === "REQUEST");
  for (const { options } of requests) {
    expect([options[50], options[54]]).toEqual([value.addresses(ADDRESS), value.addresses(SERVER)]);
  }
  const sent = await untilTrue(() => capture.frames(), (frames) => framesOf(frames, "ACK").length > 10);
  expect([framesOf(sent, "OFFER").length > 9, framesOf(sent, "NAK").length >= 5]).toEqual([true, true]);
  await net.del(container);
});

test("forged answers at renewal: the lease, its address and routes stay", async () => {
  const options = { 58: value.u32(2) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  const forged = [...misdirected, ...unusable, ...notAsked, ...refusals];
  const from = server.received().length;
  server.change({ rules: { RENEW: behind(forged) } });
  await using capture = await captureIn(segment, container, { link: "eth0", filter: "udp" });
  await server.until((all) => all.slice(from).filter(({ asked }) => asked === "RENEW").length >= 3);
  expect(framesOf(capture.frames(), "NAK").length).toBeGreaterThanOrEqual(refusals.length);
  expect(server.received().slice(from).every(({ asked }) => asked === "RENEW")).toBe(true);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ADDRESS]);
  expect(await routesIn(scene, container)).toEqual([`default via ${SERVER}`]);
  await net.del(container);
});

test("an answer that nobody waits for changes nothing", async () => {
  // The renewal is answered, and answered again when the sockets are closed.
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { 58: value.u32(2) } });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  const from = server.received().length;
  server.change({ rules: { RENEW: { nak: "late", delayMs: 1000, before: [{}] } } });
  await server.until((all) => all.slice(from).filter(({ asked }) => asked === "RENEW").length >= 3);
  expect(server.received().slice(from).every(({ asked }) => asked === "RENEW")).toBe(true);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ADDRESS]);
  await net.del(container);
});
