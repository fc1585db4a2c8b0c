/** The fields and options of each kind of message (RFC 2131 section 4.4.1, table 5), and the routes of a lease. */
import { expect, test } from "bun:test";
import {
  decline,
  discover,
  type Exchange,
  type Identity,
  release,
  renewal,
  request,
} from "../../../../src/services/dhcp/v4/lease/request.ts";
import { configuredRoutes } from "../../../../src/services/dhcp/configured-routes.ts";
import type { LeaseOptions } from "../../../../src/services/dhcp/lease-options.ts";
import { routesOf } from "../../../../src/services/dhcp/v4/lease/routes.ts";
import { decodeRequest } from "../../../support/dhcp/other-side.ts";
import type { Offered } from "../../../../src/services/dhcp/v4/message/offer.ts";
import { parsePrefix } from "../../../../src/net/address.ts";
import { ip } from "../../../support/dhcp-simulation.ts";

const hex = (text: string) => Uint8Array.fromHex(text);
const mac = hex("020000000007"), clientId = hex("0102"), hostName = hex("63");
const who: Identity = { mac, clientId, wanted: [1, 121], provided: new Map([[12, hostName]]), broadcast: true };
const exchange: Exchange = { xid: 0xfedcba98, secs: 300 }, address = ip("10.1.0.9"), server = ip("10.1.0.1");
const usual: [number, Uint8Array][] = [[12, hostName], [55, hex("0179")], [57, hex("05dc")], [61, clientId]];
const asked: [number, Uint8Array] = [50, address], from: [number, Uint8Array] = [54, server];

test.each<[string, Uint8Array, kind: number, options: [number, Uint8Array][], ciaddr: string, broadcast: boolean]>([
  ["DISCOVER", discover(who, exchange), 1, usual, "0.0.0.0", true],
  ["DISCOVER with a hint", discover(who, exchange, address), 1, [...usual, asked], "0.0.0.0", true],
  ["REQUEST of an offer", request(who, exchange, address, server), 3, [...usual, asked, from], "0.0.0.0", true],
  ["REQUEST of a remembered address", request(who, exchange, address), 3, [...usual, asked], "0.0.0.0", true],
  // Who has an address receives what is sent to it.
  ["REQUEST that renews", renewal(who, exchange, address), 3, usual, "10.1.0.9", false],
  ["DECLINE", decline(who, exchange, address, server), 4, [[61, clientId], asked, from], "0.0.0.0", true],
  ["RELEASE", release(who, exchange, address, server), 7, [[61, clientId], from], "10.1.0.9", false],
])("%s", (_name, bytes, kind, options, ciaddr, broadcast) => {
  const message = decodeRequest(bytes)!;
  expect(message).toMatchObject({ ...exchange, mac, broadcast, clientAddress: ip(ciaddr) });
  expect(message.options).toEqual(new Map([[53, Uint8Array.of(kind)], ...options]));
});

test("who wants nothing, and has no client id, does not say so", () => {
  const message = decodeRequest(discover({ ...who, clientId: undefined, wanted: [], broadcast: false }, exchange))!;
  expect([[...message.options.keys()].sort((one, other) => one - other), message.broadcast]).toEqual([
    [12, 53, 57],
    false,
  ]);
  expect(decodeRequest(discover({ ...who, wanted: [6] }, exchange))!.options.get(55)).toEqual(Uint8Array.of(6));
});

const route = (destination: string, gateway?: string) => ({
  destination: parsePrefix(destination)!,
  gateway: gateway === undefined ? undefined : ip(gateway),
});
const routes = [route("10.2.0.0/16"), route("10.3.0.0/16", "10.1.0.2")];
const onLink = { dst: "10.2.0.0/16", gw: "0.0.0.0", scope: 253 }, through = { dst: "10.3.0.0/16", gw: "10.1.0.2" };
const byDefault = { dst: "0.0.0.0/0", gw: "10.1.0.1" };

test.each<[string, Partial<Offered>, Parameters<typeof routesOf>[1]["ignored"], object[]]>([
  ["nothing", {}, [], []],
  ["a router", { routers: [server, ip("10.1.0.2")] }, [], [byDefault]],
  ["a router that is ignored", { routers: [server] }, ["routers"], []],
  ["routes and a router", { routes, routers: [server] }, [], [onLink, through, byDefault]],
  ["routes that are ignored, and a router", { routes, routers: [server] }, ["routes"], [byDefault]],
  ["routes, and a router that is ignored", { routes, routers: [server] }, ["routers"], [onLink, through]],
  ["classless routes, in place of routers", { routes, routers: [server], isClassless: true }, [], [onLink, through]],
])("routes: of %s", (_what, offered, ignored, expected) => {
  const lease = { routers: [], isClassless: false, ...offered } as unknown as Offered;
  expect(routesOf(lease, { ignored, priority: 0 })).toEqual(expected as never);
  const withMetric = expected.map((one) => ({ ...one, priority: 5 }));
  expect(routesOf(lease, { ignored, priority: 5 })).toEqual(withMetric as never);
});

const offer = { routers: [server], isClassless: false, routes } as unknown as Offered;
const configured = (...own: LeaseOptions["routes"] & object) => ({ ignored: [], priority: 0, routes: own });

test("routes of the configuration come beside the server's, and those on the link before all others", () => {
  expect(routesOf(offer, configured({ dst: "10.4.0.0/16", gw: "10.1.0.4" }, { dst: "10.5.0.0/16", scope: 253 })))
    .toEqual([
      onLink,
      { dst: "10.5.0.0/16", gw: "0.0.0.0", scope: 253 },
      through,
      byDefault,
      { dst: "10.4.0.0/16", gw: "10.1.0.4" },
    ]);
});

test("a route of the configuration is in place of the server's to the same destination, but in another table", () => {
  const own = [
    { dst: "0.0.0.0/0", gw: "10.1.0.4" },
    { dst: "10.2.0.0/16", table: 254 },
    { dst: "10.3.0.0/16", table: 7, gw: "10.1.0.5" },
  ];
  expect(routesOf(offer, configured(...own))).toEqual([
    through,
    { dst: "0.0.0.0/0", gw: "10.1.0.4" },
    { dst: "10.2.0.0/16", gw: "10.1.0.1", table: 254 },
    { dst: "10.3.0.0/16", gw: "10.1.0.5", table: 7 },
  ]);
  expect(routesOf(offer, configured({ dst: "10.3.0.0/16", table: 0, gw: "10.1.0.5" }))).not.toContainEqual(through);
  // One that is longer or shorter has another destination.
  expect(routesOf(offer, configured({ dst: "10.3.0.0/17", gw: "10.1.0.5" }))).toContainEqual(through);
});

const defaultOnLink = { dst: "0.0.0.0/0", gw: "0.0.0.0", scope: 253 };
test.each<[string, Partial<Offered>, Parameters<typeof routesOf>[1]["ignored"], gw: string]>([
  ["the first router", { routers: [ip("10.1.0.2"), server] }, [], "10.1.0.2"],
  ["the first router, also beside classless routes", { routers: [server], isClassless: true }, [], "10.1.0.1"],
  [
    "the gateway of the default route, where no router is named",
    {
      routes: [...routes, route("0.0.0.0/0", "10.1.0.9")],
      isClassless: true,
    },
    [],
    "10.1.0.9",
  ],
  ["the link, without a router", {}, [], "0.0.0.0"],
  ["the link, where routers are ignored", { routers: [server] }, ["routers"], "0.0.0.0"],
  ["the router, where routes are ignored", { routers: [server], routes }, ["routes"], "10.1.0.1"],
])("a route of the configuration without a gateway goes through %s", (_what, offered, ignored, gw) => {
  const lease = { routers: [], isClassless: false, ...offered } as unknown as Offered;
  const found = routesOf(lease, { ...configured({ dst: "10.4.0.0/16" }, { dst: "10.5.0.0/16" }), ignored });
  const scope = gw === "0.0.0.0" ? { scope: 253 } : {};
  expect(found.filter(({ dst }) => /^10\.[45]/.test(dst))).toEqual([
    { dst: "10.4.0.0/16", gw, ...scope },
    { dst: "10.5.0.0/16", gw, ...scope },
  ]);
});

test("what the router is does not matter where the configuration has the default route", () => {
  expect(routesOf({ ...offer, routers: [], routes: [] }, configured({ dst: "0.0.0.0/0" }))).toEqual([defaultOnLink]);
  expect(routesOf(offer, configured({ dst: "0.0.0.0/0", mtu: 1400 }))).toContainEqual({ ...byDefault, mtu: 1400 });
});

test("the metric is that of the route itself, or that of all", () => {
  const own = [{ dst: "10.4.0.0/16", gw: "10.1.0.4", priority: 9 }, {
    dst: "10.5.0.0/16",
    gw: "10.1.0.4",
    priority: 0,
  }];
  const rest = { dst: "10.6.0.0/16", gw: "10.1.0.4" };
  expect(routesOf({ ...offer, routes: [] }, { ...configured(...own, rest), priority: 5 })).toEqual([
    { ...byDefault, priority: 5 },
    ...own,
    { ...rest, priority: 5 },
  ]);
});

test("routes of IPv6 are those of the configuration, on the link unless they have a gateway", () => {
  const own = [
    { dst: "fd00:9::/64", gw: "fe80::1", priority: 3 },
    { dst: "10.4.0.0/16", gw: "10.1.0.4" },
    { dst: "fd00:1::/64" },
    { dst: "fd00:2::/64", gw: "::" },
  ];
  expect(configuredRoutes({ priority: 5, routes: own }, "ipv6")).toEqual([
    { dst: "fd00:1::/64", priority: 5 },
    { dst: "fd00:2::/64", priority: 5 },
    own[0]!,
  ]);
  expect(configuredRoutes({ priority: 5 }, "ipv6")).toEqual([]);
  expect(routesOf(offer, configured(...own)).map(({ dst }) => dst)).not.toContain("fd00:1::/64");
});
