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
} from "../../../src/dhcp/v4/lease/request.ts";
import { routesOf } from "../../../src/dhcp/v4/lease/routes.ts";
import { decodeRequest } from "../../../src/dhcp/v4/message/message.ts";
import type { Offered } from "../../../src/dhcp/v4/message/offer.ts";
import { parsePrefix } from "../../../src/net/address.ts";
import { ip } from "../../support/dhcp-simulation.ts";

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
