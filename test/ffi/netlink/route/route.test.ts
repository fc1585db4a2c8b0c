/** Routes on the wire, how they are read and compared, and the words for them. */
import { describe, expect, test } from "bun:test";
import { EEXIST, ENETUNREACH, ENOENT, ESRCH } from "../../../../src/ffi/errno.ts";
import {
  addRoute,
  defaultRoute,
  delRoute,
  describeRoute,
  isSameRoute,
  type KernelRoute,
  listRoutes,
  readRoute,
} from "../../../../src/ffi/netlink/route/route.ts";
import { linkTo } from "../../../../src/ffi/netlink/route/route-lookup.ts";
import { RT_TABLE_UNSPEC, RTM_NEWROUTE } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, formatPrefix, parseAddress, parsePrefix } from "../../../../src/net/address.ts";
import {
  answering,
  answeringEach,
  bodyOf,
  bytesBy,
  type FakeKernel,
  refusing,
  sentAs,
  sentBy,
  socketTo,
} from "../fake-kernel.ts";

const HEADER = 12; // struct rtmsg
const to = (dst: string, more: Partial<KernelRoute> = {}): KernelRoute => ({
  dst: parsePrefix(dst)!,
  oif: 7,
  ...more,
});

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

test("what is not said is not sent, but for the main table, as a person would add it", () => {
  const byDefault = to("0.0.0.0/0", { oif: 0, mtu: 1400 });
  expect(sent((socket) => addRoute(socket, byDefault))).toEqual([
    "type 24, flags 0x405", // RTM_NEWROUTE: a request with an ACK, create
    "02000000 00030001 00000000", // RTPROT_BOOT, RT_SCOPE_UNIVERSE, RTN_UNICAST
    "15: fe000000", // RT_TABLE_MAIN
    "8.2: 78050000",
  ]);
  expect(sent((socket) => addRoute(socket, to("fd00::/1", { advmss: 9 }))).at(-1)).toBe("8.8: 09000000");
});

test("a route is deleted whatever its scope, unless that is said, and no longer there is no failure", () => {
  expect(sent((socket) => delRoute(socket, to("10.0.0.0/8"))).slice(0, 3)).toEqual([
    "type 25, flags 0x5",
    "02080000 0000ff00 00000000", // RT_SCOPE_NOWHERE
    "1: 0a000000",
  ]);
  expect(sent((socket) => delRoute(socket, to("10.0.0.0/8", { scope: 253, type: 6 })))[1]).toBe(
    "02080000 0000fd06 00000000",
  );
  expect(delRoute(socketTo(answering(0)), to("10.0.0.0/8"))).toBe("deleted");
  expect(delRoute(socketTo(refusing(ESRCH)), to("10.0.0.0/8"))).toBe("absent");
  expect(() => delRoute(socketTo(refusing(EEXIST)), to("10.0.0.0/8"))).toThrow(
    "RTM_DELROUTE 10.0.0.0/8: file exists",
  );
  expect(() => addRoute(socketTo(refusing(EEXIST)), to("10.0.0.0/8"))).toThrow(
    "RTM_NEWROUTE 10.0.0.0/8: file exists",
  );
});

const byteRoute = bodyOf("02180000 fe02fd01 00000000", { 1: "0a010200", 4: "07000000" });
const wideRoute = bodyOf("02080000 fc03fd06 00000000", {
  1: "0a000000",
  5: "0a010001",
  6: "64000000",
  7: "0a010002",
  8: "0800020078050000" + "0800080050050000",
  15: "e8030000",
});
/** Two next hops of fd00::/16 by links 7 and 8; the second has no gateway, and is dead (RTNH_F_DEAD). */
const hop = (flags: string, link: string, attributes = "") =>
  `${(8 + attributes.length / 2).toString(16).padStart(2, "0")}00${flags}00${link}${attributes}`;
const viaOne = `14000500fe80${"00".repeat(13)}01`;
const manyHops = bodyOf("0a100000 fe030001 00000000", {
  1: `fd${"00".repeat(15)}`,
  9: hop("04", "07000000", viaOne) + hop("01", "08000000"),
});
const byDefault4 = bodyOf("02000000 fe030001 00000000", { 4: "07000000", 6: "05000000" });
const cached = bodyOf("02180000 fe020001 00020000", { 1: "0a010300", 4: "07000000" });

describe("reading", () => {
  test("fields come from the header, and from attributes where the header has no room", () => {
    expect(readRoute(bytesBy(byteRoute))).toEqual({
      dst: parsePrefix("10.1.2.0/24")!,
      oif: 7,
      table: 254,
      scope: 253,
      type: 1,
      protocol: 2,
    });
    expect(readRoute(bytesBy(wideRoute))).toEqual({
      dst: parsePrefix("10.0.0.0/8")!,
      oif: 0,
      gateway: parseAddress("10.1.0.1"),
      priority: 100,
      preferredSource: parseAddress("10.1.0.2"),
      table: 1000,
      scope: 253,
      type: 6,
      protocol: 3,
      mtu: 1400,
      advmss: 1360,
    });
  });

  test("a default route is to everything of its family", () => {
    expect(formatPrefix(readRoute(bytesBy(byDefault4)).dst)).toBe("0.0.0.0/0");
    const { dst } = readRoute(bytesBy(bodyOf("0a000000 fe030001 00000000")));
    expect(dst).toEqual({ bytes: new Uint8Array(16), bits: 0 });
  });

  test("several next hops have their links, gateways and flags", () => {
    const { hops } = readRoute(bytesBy(manyHops));
    expect(hops!.map(({ oif, gateway, flags, attributes }) => [
      oif,
      gateway && formatAddress(gateway),
      flags,
      attributes.toHex(),
    ])).toEqual([
      [7, "fe80::1", 4, viaOne],
      [8, undefined, 1, ""],
    ]);
    // A length that cannot be ends the list, and what is left over is no next hop.
    const ofHops = (hex: string) => readRoute(bytesBy(bodyOf("02000000 fe030001 00000000", { 9: hex }))).hops!.length;
    expect(ofHops("0700000007000000")).toBe(0);
    expect(ofHops("080000000700000008000000")).toBe(1);
    // Each begins at a multiple of four bytes.
    expect(ofHops("0d00000007000000" + "0500010000000000" + "0800000009000000")).toBe(2);
  });
});

describe("listing", () => {
  const all = () => answering(RTM_NEWROUTE, byteRoute, wideRoute, manyHops, cached);
  const shown = (kernel: FakeKernel, table?: number) =>
    listRoutes(socketTo(kernel), 2, table).map((
      { dst, oif, gateway },
    ) => [formatPrefix(dst), oif, gateway && formatAddress(gateway)]);

  test("asks for one table, and leaves out other tables and cached routes", () => {
    const kernel = all();
    expect(shown(kernel)).toEqual([
      ["10.1.2.0/24", 7, undefined],
      ["fd00::/16", 7, "fe80::1"],
      ["fd00::/16", 8, undefined],
    ]);
    expect(sentAs(kernel, HEADER)).toEqual(["type 26, flags 0x301", "02000000 00000000 00000000", "15: fe000000"]);
    expect(shown(all(), 1000)).toEqual([["10.0.0.0/8", 0, "10.1.0.1"]]);
  });

  test("of every table", () => {
    const kernel = all();
    expect(shown(kernel, RT_TABLE_UNSPEC)).toHaveLength(4);
    expect(sentAs(kernel, HEADER).slice(2)).toEqual([]);
  });

  test("of a table that is not there: none; another failure is one", () => {
    expect(shown(refusing(ENOENT))).toEqual([]);
    expect(() => shown(refusing(EEXIST))).toThrow("RTM_GETROUTE dump: file exists");
    expect(shown(answering(RTM_NEWROUTE + 1, byteRoute))).toEqual([]);
  });

  test("the default route is the one of the lowest metric, of IPv4 before IPv6", () => {
    const metric = (family: string, priority: string | undefined, link = "07000000") =>
      bodyOf(`${family}000000 fe030001 00000000`, priority === undefined ? { 4: link } : { 4: link, 6: priority });
    const found = (...routes: ReturnType<typeof metric>[]) => {
      const route = defaultRoute(socketTo(answering(RTM_NEWROUTE, ...routes)));
      return route && [route.oif, route.priority];
    };
    expect(found(metric("02", "05000000"), metric("02", "03000000", "08000000"))).toEqual([8, 3]);
    expect(found(metric("02", "01000000"), metric("02", undefined, "01000000"))).toEqual([1, undefined]);
    expect(found(metric("02", undefined, "01000000"), metric("02", "01000000"))).toEqual([1, undefined]);
    // One without a link, such as an unreachable one, leads nowhere; nor does one to a part.
    expect(found(metric("02", "01000000", "00000000"), byteRoute)).toBeUndefined();
    const ofV6 = answeringEach(RTM_NEWROUTE, ({ payload }) => payload[0] === 10 ? [metric("0a", "09000000")] : []);
    expect(defaultRoute(socketTo(ofV6))?.priority).toBe(9);
  });
});

describe("comparing", () => {
  const is = (wanted: KernelRoute, route: KernelRoute) => isSameRoute(wanted, route);
  const full = to("10.0.0.0/8", { gateway: parseAddress("10.1.0.1"), priority: 5, type: 1 });

  test("destination and link count always, the rest where it is wanted", () => {
    expect(is(full, full)).toBe(true);
    expect(is(to("10.0.0.0/8"), full)).toBe(true);
    expect(is(to("10.0.0.0/9"), full)).toBe(false);
    expect(is(to("11.0.0.0/8"), full)).toBe(false);
    expect(is(to("10.0.0.0/8", { oif: 8 }), full)).toBe(false);
    expect(is({ ...full, priority: 6 }, full)).toBe(false);
    expect(is({ ...full, priority: 0 }, full)).toBe(true);
    expect(is({ ...full, type: 6 }, full)).toBe(false);
    expect(is({ ...full, gateway: parseAddress("10.1.0.2") }, full)).toBe(false);
    expect(is(full, to("10.0.0.0/8", { priority: 5, type: 1 }))).toBe(false);
  });

  test("the kernel lists the network where host bits were wanted", () => {
    expect(is(to("fd00::1/64"), to("fd00::/64"))).toBe(true);
  });
});

test("the words for a route have what tells it from others", () => {
  const gateway = parseAddress("10.1.0.1");
  expect(describeRoute(to("10.0.0.0/8"))).toBe("10.0.0.0/8");
  expect(describeRoute(to("10.0.0.0/8", { gateway, priority: 5, table: 1000 }))).toBe(
    "10.0.0.0/8 via 10.1.0.1 metric 5 table 1000",
  );
  expect(describeRoute(readRoute(bytesBy(manyHops)))).toBe("fd00::/16 via fe80::1 table 254");
});

describe("the way to an address", () => {
  test("is by the link that the kernel names, asked for the address alone", () => {
    const kernel = answeringEach(
      RTM_NEWROUTE,
      ({ type }) => type === 26 ? [byteRoute] : [],
    );
    expect(linkTo(socketTo(kernel), parseAddress("10.1.2.3")!)).toBeUndefined();
    const [question, about] = kernel.sent.map(([{ payload }]) => payload.toHex());
    expect(question).toBe("02200000" + "00000000" + "00000000" + "080001000a010203");
    expect(about!.slice(0, 16)).toBe("00000000" + "07000000"); // link 7
  });

  test("there is none where the kernel says so", () => {
    for (const errno of [ENETUNREACH, 113, 13, 22, 11]) {
      expect(linkTo(socketTo(refusing(errno)), parseAddress("fd00::1")!)).toBeUndefined();
    }
    expect(() => linkTo(socketTo(refusing(ENOENT)), parseAddress("fd00::1")!)).toThrow(
      "RTM_GETROUTE fd00::1: no such file or directory",
    );
  });
});
