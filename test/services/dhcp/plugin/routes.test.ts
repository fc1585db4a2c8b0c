/** Routes of the configuration beside those of a server: at ADD, at renewals, after a restart, and at the end of a lease. */
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER6, value } from "../../../support/dhcp/offer.ts";
import { openScene, routesIn, untilLeased, untilRoutes } from "../../../support/dhcp/scene.ts";
import { SILENT } from "../../../support/dhcp/scripted-server.ts";
import { kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";

const ADDRESS = "192.168.77.50", OTHER = "192.168.77.90", SERVER = "192.168.77.1";
const { addresses, routes, u32 } = value;
/** Renewed after two seconds. */
const SOON = { 58: u32(2) };

test("they are added, win over the server's, and stay when a renewal changes those", async () => {
  const first = routes(
    ["0.0.0.0/0", SERVER],
    ["10.3.0.0/16", "192.168.77.7"],
    ["10.5.0.0/16", "192.168.77.7"],
    ["10.9.0.0/16", "0.0.0.0"],
  );
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: { ...SOON, 121: first } });
  const { machine, server, service } = scene;
  const own = [
    { dst: "10.3.0.0/16" },
    { dst: "10.4.0.0/16", gw: "192.168.77.8", priority: 9 },
    { dst: "0.0.0.0/0", gw: "192.168.77.2" },
  ];
  const container = await machine.container("c1"), net = service.network({}, { routes: own });
  const result = await net.add(container);
  expect(result.routes).toEqual([
    { dst: "10.9.0.0/16", gw: "0.0.0.0", scope: 253 },
    { dst: "10.5.0.0/16", gw: "192.168.77.7" },
    { dst: "10.3.0.0/16", gw: SERVER },
    ...own.slice(1),
  ]);
  const constant = ["10.4.0.0/16 via 192.168.77.8 metric 9", "default via 192.168.77.2"];
  const added = [`10.3.0.0/16 via ${SERVER}`, "10.5.0.0/16 via 192.168.77.7", "10.9.0.0/16", ...constant].sort();
  expect(await routesIn(scene, container)).toEqual(added);
  await net.check(container);
  await untilLeased(scene, container, ADDRESS);

  // A route of the server to each destination of the configuration, another router, and one that is new.
  const second = routes(
    ["0.0.0.0/0", "192.168.77.3"],
    ["10.3.0.0/16", "192.168.77.7"],
    ["10.4.0.0/16", "192.168.77.7"],
    ["10.6.0.0/16", "192.168.77.7"],
  );
  server.change({ options: { ...SOON, 3: addresses("192.168.77.3"), 121: second } });
  await untilRoutes(scene, container, (all) => all.includes("10.6.0.0/16 via 192.168.77.7"));
  const renewed = ["10.3.0.0/16 via 192.168.77.3", "10.6.0.0/16 via 192.168.77.7", ...constant].sort();
  // The new route is added first.
  expect(await untilRoutes(scene, container, (all) => all.some((one) => one.startsWith("10.3.")))).toEqual(renewed);

  // The next service has them from the record.
  await service.restart();
  await machine.sh("ip address flush dev eth0 scope global", { in: container });
  await untilLeased(scene, container, ADDRESS);
  expect(await untilRoutes(scene, container, (all) => all.length === renewed.length)).toEqual(renewed);
  server.change({ options: { ...SOON, 3: null, 121: routes(["10.7.0.0/16", "192.168.77.7"]) } });
  await untilRoutes(scene, container, (all) => all.includes("10.7.0.0/16 via 192.168.77.7"));
  // Without a router, the destination is on the link.
  expect(await untilRoutes(scene, container, (all) => all.includes("10.3.0.0/16"))).toEqual(
    ["10.3.0.0/16", "10.7.0.0/16 via 192.168.77.7", ...constant].sort(),
  );
  await net.del(container);
});

test("they go with the lease, come with the next one, and move with the address", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8 });
  const { segment, machine, server, service } = scene;
  const own = [{ dst: "10.3.0.0/16", gw: "192.168.77.8" }, { dst: "10.4.0.0/16" }];
  const container = await machine.container("c1"), net = service.network({}, { routes: own });
  await net.add(container);
  const all = ["10.3.0.0/16 via 192.168.77.8", `10.4.0.0/16 via ${SERVER}`, `default via ${SERVER}`];
  expect(await routesIn(scene, container)).toEqual(all);
  await untilLeased(scene, container, ADDRESS);
  server.change({ rules: { any: SILENT } });
  // With another address on the link, the kernel keeps routes.
  await machine.sh("ip address add 10.99.0.1/24 dev eth0", { in: container });
  await untilAddresses(segment, container, (found) => found.length === 1);
  expect(await untilRoutes(scene, container, (found) => found.length === 0)).toEqual([]);
  await machine.sh("ip address del 10.99.0.1/24 dev eth0", { in: container });
  server.tell({ address: OTHER, leaseSeconds: 20, options: SOON, rules: {} });
  await untilLeased(scene, container, OTHER);
  expect(await untilRoutes(scene, container, (found) => found.length === all.length)).toEqual(all);
  await net.del(container);
});

test("of IPv6: they make other addresses reachable, and come again with the address", async () => {
  await using segment = await serverBehindBridge();
  const times = { preferredSeconds: 40, validSeconds: 60, renewSeconds: 3, rebindSeconds: 50 };
  await serve6(kea6, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { machine } = segment, container = await machine.container("c1");
  const own = [{ dst: "fd00:77::/64" }, { dst: "fd00:99::/64", gw: "fd00:77::1" }];
  const net = service.network({}, { ipv4: false, ipv6: true, priority: 77, routes: own });
  const result = await net.add(container), [{ address }] = result.ips;
  expect(result.routes).toEqual(own.map((one) => ({ ...one, priority: 77 })));
  await net.check(container);
  const isThere = (all: { address: string; valid: number }[]) =>
    all.some((one) => `${one.address}/128` === address && one.valid < Infinity);
  await untilAddresses(segment, container, isThere);
  await untilTrue(() => ping(machine, container, "fd00:77::1"), Boolean);
  const shown = () => machine.sh("ip -6 route show dev eth0 metric 77", { in: container });
  const areThere = (text: string) => /^fd00:77::\/64 /m.test(text) && /^fd00:99::\/64 via fd00:77::1 /m.test(text);
  expect(await shown()).toSatisfy(areThere);
  await machine.sh("ip -6 address flush dev eth0 scope global; ip -6 route flush dev eth0 metric 77", {
    in: container,
  });
  await untilAddresses(segment, container, isThere);
  await untilTrue(shown, areThere);
  await net.check(container);
  await net.del(container);
});
