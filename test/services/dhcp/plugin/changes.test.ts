/** The plugin dhcp when a server changes its mind: the container's address, routes and MTU follow, and nothing else does. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, routesIn, untilLeased, untilRoutes } from "../../../support/dhcp/scene.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", OTHER = "192.168.77.90", SERVER = "192.168.77.1";
const { routes, addresses, u16, u32 } = value;
/** Renewed after two seconds. */
const SOON = { 58: u32(2) };

test("a NAK at renewal: another address at once, its routes, and the old one is gone", async () => {
  const before = routes(["0.0.0.0/0", SERVER], ["10.5.0.0/16", "192.168.77.7"]);
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { ...SOON, 121: before } });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  await machine.sh("ip route add 10.9.0.0/16 dev eth0; ip route add 10.8.0.0/16 via 192.168.77.8", { in: container });
  const after = routes(["0.0.0.0/0", SERVER], ["10.6.0.0/16", "192.168.77.7"]);
  const rules = { RENEW: [{ nak: "moved" }, {}] };
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "arp" });
  server.tell({ address: OTHER, leaseSeconds: 20, options: { 121: after }, rules });
  await untilLeased(scene, container, OTHER);
  // Neighbours may remember another card for the address.
  const isTold = ({ source, destination }: { source?: string; destination?: string }) =>
    source === OTHER && destination === OTHER;
  await untilTrue(() => capture.frames(), (frames) => frames.some(isTold));
  const all = await untilRoutes(scene, container, (found) => found.includes("10.6.0.0/16 via 192.168.77.7"));
  // The kernel drops a link's routes with its last address, also those of others.
  expect(all.filter((route) => /^(default|10\.[56])/.test(route))).toEqual([
    "10.6.0.0/16 via 192.168.77.7",
    `default via ${SERVER}`,
  ]);
  await untilTrue(() => ping(machine, container, SERVER), Boolean);
  const asked = server.received().map((one) => one.asked);
  expect(asked.slice(asked.lastIndexOf("RENEW"))).toEqual(["RENEW", "DISCOVER", "REQUEST"]);
  // The refused address is not wished for again.
  expect(server.received().findLast((one) => one.asked === "DISCOVER")!.options[50]).toBeUndefined();
  expect(service.log()).toContain("moved");
  await net.del(container);
  await server.until((received) => received.at(-1)!.kind === "RELEASE" && received.at(-1)!.ciaddr === OTHER);
});

test("routes come, go and get other gateways at renewal; those of others stay", async () => {
  const first = routes(["0.0.0.0/0", SERVER], ["10.5.0.0/16", "192.168.77.7"], ["10.7.0.0/16", "192.168.77.7"]);
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { ...SOON, 121: first } });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  await machine.sh(
    `ip route add 10.8.0.0/16 via 192.168.77.8
     ip route add 10.5.0.0/16 via 192.168.77.9 metric 7
     ip route replace 10.7.0.0/16 via 192.168.77.9`,
    { in: container },
  );
  const others = [
    "10.5.0.0/16 via 192.168.77.9 metric 7",
    "10.7.0.0/16 via 192.168.77.9",
    "10.8.0.0/16 via 192.168.77.8",
  ];
  // 10.5 has another gateway, 10.6 is new, 10.7 is no more what it was, and 10.8 is offered, but there.
  const second = routes(
    ["0.0.0.0/0", "192.168.77.2"],
    ["10.5.0.0/16", "192.168.77.6"],
    ["10.6.0.0/16", "192.168.77.7"],
    ["10.8.0.0/16", "192.168.77.7"],
  );
  server.change({ options: { ...SOON, 121: second } });
  const changed = ["10.5.0.0/16 via 192.168.77.6", "10.6.0.0/16 via 192.168.77.7", "default via 192.168.77.2"];
  await untilRoutes(scene, container, (all) => all.includes("10.6.0.0/16 via 192.168.77.7"));
  await untilRoutes(scene, container, (all) => all.includes("default via 192.168.77.2"));
  expect(await routesIn(scene, container)).toEqual([...changed, ...others].sort());
  // Option 3 and the classful routes of 33 count without 121.
  server.change({ options: { ...SOON, 33: addresses("10.1.2.3", "192.168.77.7") } });
  await untilRoutes(scene, container, (all) => all.includes(`default via ${SERVER}`));
  await untilRoutes(scene, container, (all) => !all.includes("10.6.0.0/16 via 192.168.77.7"));
  expect(await routesIn(scene, container)).toEqual(
    ["10.0.0.0/8 via 192.168.77.7", `default via ${SERVER}`, ...others].sort(),
  );
  server.change({ options: { ...SOON, 3: addresses("192.168.77.3", SERVER) } });
  await untilRoutes(scene, container, (all) => all.includes("default via 192.168.77.3"));
  server.change({ options: { ...SOON, 3: null } });
  await untilRoutes(scene, container, (all) => !all.some((route) => route.startsWith("default")));
  expect(await routesIn(scene, container)).toEqual(others);
  await net.del(container);
});

test("an MTU is lowered at ADD and at renewals, never raised, and never below 576", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { ...SOON, 26: u16(1400) } });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  const mtu = async () => (await linkIn(machine, container)).mtu;
  await net.add(container);
  expect(await mtu()).toBe(1400);
  const renewed = async (hex: string) => {
    server.change({ options: { ...SOON, 26: hex } });
    const before = server.received().length;
    // The second one is sent when the first one's answer has been used.
    await server.until((all) => all.slice(before).filter(({ asked }) => asked === "RENEW").length >= 2);
  };
  await renewed(u16(1300));
  expect(await mtu()).toBe(1300);
  await renewed(u16(1450));
  expect(await mtu()).toBe(1300);
  await renewed(u16(575));
  expect(await mtu()).toBe(1300);
  await renewed(u16(576));
  expect(await mtu()).toBe(576);
  expect(service.log()).toContain("option 26 is malformed: 023f");
  await net.del(container);
});

test("an MTU that would take IPv6 from the container is not set", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { ...SOON, 26: u16(1300) } });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await machine.sh("ip -6 address add fd00:77::50/64 dev eth0 nodad", { in: container });
  server.change({ options: { ...SOON, 26: u16(1279) } });
  const before = server.received().length;
  await server.until((all) => all.slice(before).filter(({ asked }) => asked === "RENEW").length >= 2);
  expect((await linkIn(machine, container)).mtu).toBe(1300);
  server.change({ options: { ...SOON, 26: u16(1280) } });
  await untilTrue(() => linkIn(machine, container), (link) => link.mtu === 1280);
  await net.del(container);
});

test("an MTU that would take IPv6 from a container that is to have it is not set", async () => {
  await using scene = await openScene({ address: ADDRESS, options: { 26: u16(1279) } });
  const { machine, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { ipv6: true, required: ["ipv4"] });
  await net.add(container);
  expect((await linkIn(machine, container)).mtu).toBe(1500);
  await net.del(container);
});
