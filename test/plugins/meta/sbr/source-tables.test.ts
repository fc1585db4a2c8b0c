/** Which routes go into an address's own table, and which leave the main table. */
import { describe, expect, test } from "bun:test";
import { imageOf, readImage, type RouteImage } from "../../../../src/ffi/netlink/route/route-image.ts";
import { parseAddress, parsePrefix } from "../../../../src/net/address.ts";
import { mainTable, type OwnAddress, routesFor } from "../../../../src/plugins/meta/sbr/source-tables.ts";

const LINK = 7, SCOPE_LINK = 253, SCOPE_HOST = 254;

interface Written {
  via?: string;
  from?: string;
  scope?: number;
  priority?: number;
}

const bytesOf = (text: string | undefined) => text === undefined ? undefined : parseAddress(text);

function route(dst: string, { via, from, scope, priority }: Written = {}): RouteImage {
  const bytes = imageOf({
    dst: parsePrefix(dst)!,
    oif: LINK,
    gateway: bytesOf(via),
    preferredSource: bytesOf(from),
    scope,
    priority,
  });
  return { route: readImage(bytes, 254), protocol: 3, bytes };
}

const own = (address: string, gateway?: string): OwnAddress => ({
  prefix: parsePrefix(address)!,
  gateway: bytesOf(gateway),
});
const hex = (images: readonly Uint8Array[]) => images.map((bytes) => bytes.toHex());
const bodies = (...images: RouteImage[]) => images.map(({ bytes }) => bytes.toHex());

describe("routesFor()", () => {
  const one = own("10.1.0.2/24", "10.1.0.1"), other = own("10.2.0.2/24"), v6 = own("fd00::2/64", "fd00::1");
  const all = [one, other, v6];
  const table = (address: OwnAddress, routes: RouteImage[], ...fixed: string[]) =>
    hex(routesFor(address, all, routes, LINK, fixed.map((text) => parseAddress(text)!)));
  const ofOne = route("192.0.2.0/24", { via: "10.1.0.9" }), ofOther = route("10.2.0.0/24", { from: "10.2.0.2" });
  const ofAll = route("198.51.100.0/24", { scope: SCOPE_LINK });
  const byDefault = route("0.0.0.0/0", { via: "10.1.0.1" });

  test("has what is the address's and what is nobody's, and its gateway's default route", () => {
    expect(table(one, [ofOne, ofOther, ofAll])).toEqual(bodies(ofOne, ofAll, byDefault));
    expect(table(other, [ofOne, ofOther, ofAll])).toEqual(bodies(ofOther, ofAll));
  });

  test("has one default route: one of another priority does not count", () => {
    expect(table(one, [byDefault])).toEqual(bodies(byDefault));
    const later = route("0.0.0.0/0", { via: "10.1.0.1", priority: 5 });
    expect(table(one, [later])).toEqual(bodies(later, byDefault));
  });

  test("has the fixed gateway of its family in place of others", () => {
    const fixed = route("0.0.0.0/0", { via: "10.1.0.7" });
    expect(table(one, [byDefault, ofOne], "fd00::7", "10.1.0.7")).toEqual(bodies(ofOne, fixed));
    expect(table(one, [byDefault], "fd00::7")).toEqual(bodies(byDefault));
  });

  test("IPv6's default route has the kernel's priority", () => {
    const v6Default = route("::/0", { via: "fd00::1", priority: 1024 });
    expect(table(v6, [ofOne])).toEqual(bodies(v6Default));
    expect(table(v6, [v6Default])).toEqual(bodies(v6Default));
  });
});

describe("mainTable()", () => {
  const all = [own("10.1.0.2/24"), own("fd00::2/64")];
  const onLink = route("10.1.0.0/24", { scope: SCOPE_LINK }), far = route("0.0.0.0/0", { via: "10.1.0.1" });
  const v6OnLink = route("fd00::/64"), v6Far = route("::/0", { via: "fd00::1" }), linkLocal = route("fe80::/64");
  const main = (routes: RouteImage[], hints: boolean, of = all) => {
    const { withdrawn, hints: found } = mainTable(of, routes, LINK, hints);
    return { withdrawn: hex(withdrawn), hints: hex(found) };
  };

  test("loses all routes of the addresses' families, but those to link-local addresses", () => {
    const routes = [onLink, far, v6OnLink, v6Far, linkLocal];
    expect(main(routes, false)).toEqual({ withdrawn: bodies(onLink, far, v6OnLink, v6Far), hints: [] });
    expect(main(routes, false, [own("10.1.0.2/24")]).withdrawn).toEqual(bodies(onLink, far));
  });

  test("with hints keeps on-link routes, and prefers the address towards its subnet", () => {
    const others = [route("10.9.0.0/24", { scope: SCOPE_LINK }), route("10.8.0.0/24", { scope: SCOPE_HOST })];
    const v6Other = route("fd09::/64");
    expect(main([onLink, far, ...others, v6OnLink, v6Far, v6Other], true)).toEqual({
      withdrawn: bodies(onLink, far, v6OnLink, v6Far),
      hints: bodies(
        route("10.1.0.0/24", { from: "10.1.0.2", scope: SCOPE_LINK }),
        route("fd00::/64", { from: "fd00::2", priority: 1024 }),
      ),
    });
  });

  test("an address without a subnet gets no hint", () => {
    expect(main([], true, [own("10.1.0.2/32"), own("fd00::2/128")]).hints).toEqual([]);
  });
});
