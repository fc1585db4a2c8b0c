/** Routes as bytes: what is copied of the kernel's listing, and what is left out because the kernel would reject it. */
import { describe, expect, test } from "bun:test";
import { EEXIST, ENODEV, EPERM, ESRCH } from "../../../../src/ffi/errno.ts";
import {
  addRouteImage,
  delRouteImage,
  imageOf,
  listRouteImages,
  routesOfLink,
} from "../../../../src/ffi/netlink/route/route-image.ts";
import { RTM_NEWROUTE } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { formatPrefix, parsePrefix } from "../../../../src/net/address.ts";
import { answering, type Body, bodyOf, refusing, sentAs, socketTo } from "../fake-kernel.ts";

const HEADER = 12; // struct rtmsg
const images = (...bodies: Body[]) => listRouteImages(socketTo(answering(RTM_NEWROUTE, ...bodies)));

/** With a preference that no table of ours decodes (RTA_PREF), the table, and how long it has been (RTA_CACHEINFO). */
const route = bodyOf("0a400000 fe02fd01 11000000", {
  1: `fd${"00".repeat(15)}`,
  20: "01",
  15: "e8030000",
  12: "ff".repeat(32),
  4: "07000000",
});

test("an image has every attribute but the table and the kernel's state", () => {
  const [image, ...others] = images(route);
  expect(others).toEqual([]);
  expect(image!.bytes.toHex()).toBe(
    "0a400000" + "0002fd01" + "00000000" + // no table, and neither RTNH_F_LINKDOWN nor RTNH_F_DEAD
      "14000100" + `fd${"00".repeat(15)}` + "0800040007000000" + "0500140001000000",
  );
  expect(image!.protocol).toBe(2);
  expect(image!.route).toMatchObject({ oif: 7, table: 1000, scope: 253 });
  const onlink = bodyOf("02000000 fe030001 05000000"); // RTNH_F_ONLINK is no state
  expect(images(onlink)[0]!.bytes.toHex().slice(16)).toBe("04000000");
});

test("the routes of every table and family are asked for", () => {
  const kernel = answering(RTM_NEWROUTE, route);
  listRouteImages(socketTo(kernel));
  expect(sentAs(kernel, HEADER)).toEqual(["type 26, flags 0x301", "00000000 00000000 00000000"]);
});

const gateway4 = "0a010001";

describe("several next hops", () => {
  // struct rtnexthop: length, flags, hops, link; then RTA_GATEWAY
  const first = "10000500" + "07000000" + "08000500" + gateway4, second = "08001100" + "08000000";

  test("of IPv4 stay together, without the kernel's state", () => {
    const [image, ...others] = images(bodyOf("02000000 fe030001 00000000", { 9: second + first, 4: "09000000" }));
    expect(others).toEqual([]);
    expect(image!.bytes.toHex()).toBe(
      "02000000" + "00030001" + "00000000" + "0800040009000000" + "1c000900" +
        "08000000" + "08000000" + "10000400" + "07000000" + "08000500" + gateway4,
    );
    expect(image!.route.hops!.map(({ oif, flags }) => [oif, flags])).toEqual([[8, 0], [7, 4]]);
  });

  test("of IPv6 become an image each, of which the kernel makes one again", () => {
    const gateway6 = `fe80${"00".repeat(13)}01`, ofV6 = "1c000500" + "07000000" + "14000500" + gateway6;
    const found = images(bodyOf("0a000000 fe030001 00000000", { 9: ofV6 + second, 6: "00040000" }));
    expect(found.map(({ bytes }) => bytes.toHex())).toEqual([
      "0a000000" + "00030001" + "04000000" + "0800060000040000" + "14000500" + gateway6 + "0800040007000000",
      "0a000000" + "00030001" + "00000000" + "0800060000040000" + "0800040008000000",
    ]);
    expect(found.map(({ route: { oif, gateway } }) => [oif, gateway?.toHex()])).toEqual([[7, gateway6], [
      8,
      undefined,
    ]]);
  });
});

test("of a link are the unicast routes of the table that leave by it alone, those without a gateway first", () => {
  const of = (dst: string, attributes: Record<number, string>, header = "fe030001") =>
    bodyOf(`02180000 ${header} 00000000`, { 1: dst, ...attributes });
  const viaSeven = "10000000" + "07000000" + "08000500" + gateway4, bySeven = "08000000" + "07000000";
  const all = images(
    of("0a010100", { 4: "07000000", 5: gateway4 }),
    of("0a010200", { 4: "07000000" }),
    of("0a010300", { 4: "08000000" }),
    of("0a010400", { 4: "07000000" }, "ff030001"), // another table
    of("0a010500", { 4: "07000000" }, "fe030002"), // RTN_LOCAL
    of("0a010600", { 9: viaSeven + bySeven }),
    of("0a010700", { 9: bySeven + "08000000" + "08000000" }),
    of("0a010800", { 9: bySeven + bySeven }),
  );
  const names = (link: number, table: number) =>
    routesOfLink(all, link, table).map(({ route }) => formatPrefix(route.dst));
  expect(names(7, 254)).toEqual(["10.1.2.0/24", "10.1.8.0/24", "10.1.1.0/24", "10.1.6.0/24"]);
  expect(names(7, 255)).toEqual(["10.1.4.0/24"]);
});

test("an image is added behind others to the destination, or deleted, in the table that is named", () => {
  const bytes = imageOf({ dst: parsePrefix("10.0.0.0/8")!, oif: 7 }), kernel = answering(0);
  expect(addRouteImage(socketTo(kernel), bytes, 1000)).toBe("added");
  const body = ["02080000 00030001 00000000", "1: 0a000000", "4: 07000000", "15: e8030000"];
  expect(sentAs(kernel, HEADER)).toEqual(["type 24, flags 0xc05", ...body]); // create, append
  expect(delRouteImage(socketTo(kernel), bytes, 1000)).toBe("deleted");
  expect(sentAs(kernel, HEADER)).toEqual(["type 25, flags 0x5", ...body]);

  expect(addRouteImage(socketTo(refusing(EEXIST)), bytes, 1)).toBe("present");
  for (const errno of [ESRCH, ENODEV]) expect(delRouteImage(socketTo(refusing(errno)), bytes, 1)).toBe("absent");
  expect(() => addRouteImage(socketTo(refusing(EPERM)), bytes, 1)).toThrow("RTM_NEWROUTE 10.0.0.0/8 table 1: oper");
  expect(() => delRouteImage(socketTo(refusing(EPERM)), bytes, 1)).toThrow("RTM_DELROUTE 10.0.0.0/8 table 1: oper");
});
