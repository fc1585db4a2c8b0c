/** Ranges from configuration: defaults, and refusals in the reference plugin's words. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  capacityOf,
  formatRangeSet,
  isInRange,
  planRangeSets,
  rangeCapacity,
  type RangeConf,
  rangeOf,
} from "../../src/ipam/range.ts";
import { formatAddress, parseAddress } from "../../src/net/address.ts";

const plan = (sets: RangeConf[][], cniVersion = "1.0.0") => planRangeSets(sets, cniVersion);

const show = (conf: RangeConf) => {
  const range = plan([[conf]])[0]![0]!;
  return `${formatRangeSet([range])} via ${formatAddress(range.gateway!)}: ${rangeCapacity(range)}`;
};

describe("planRangeSets() fills in what the configuration leaves out", () => {
  const cases: [string, RangeConf, string][] = [
    ["IPv4", { subnet: "10.1.0.0/24" }, "10.1.0.1-10.1.0.254 via 10.1.0.1: 253"],
    ["the smallest IPv4 subnet", { subnet: "10.1.0.4/30" }, "10.1.0.5-10.1.0.6 via 10.1.0.5: 1"],
    ["IPv6, which has no broadcast", { subnet: "fd00::/126" }, "fd00::1-fd00::3 via fd00::1: 2"],
    [
      "a gateway outside the range",
      { subnet: "10.1.0.0/29", gateway: "10.1.0.7" },
      "10.1.0.1-10.1.0.6 via 10.1.0.7: 6",
    ],
    [
      "both ends",
      { subnet: "10.1.0.0/24", rangeStart: "10.1.0.9", rangeEnd: "10.1.0.11" },
      "10.1.0.9-10.1.0.11 via 10.1.0.1: 3",
    ],
    [
      "one address",
      { subnet: "10.1.0.0/24", rangeStart: "10.1.0.9", rangeEnd: "10.1.0.9" },
      "10.1.0.9-10.1.0.9 via 10.1.0.1: 1",
    ],
    [
      "the broadcast address, if asked for",
      { subnet: "10.1.0.0/29", rangeEnd: "10.1.0.7" },
      "10.1.0.1-10.1.0.7 via 10.1.0.1: 6",
    ],
    [
      "the last of all subnets",
      { subnet: "255.255.255.252/30" },
      "255.255.255.253-255.255.255.254 via 255.255.255.253: 1",
    ],
    [
      "empty texts as absent",
      { subnet: "10.1.0.0/29", rangeStart: "", rangeEnd: "", gateway: "" },
      "10.1.0.1-10.1.0.6 via 10.1.0.1: 5",
    ],
  ];
  test.each(cases)("%s", (_, conf, expected) => expect(show(conf)).toBe(expected));
});

describe("planRangeSets() refuses in the reference plugin's words", () => {
  const one = (conf: RangeConf): RangeConf[][] => [[conf]];
  const v4 = { subnet: "10.1.0.0/24" };
  const v6 = { subnet: "fd00::/64" };
  const cases: [message: string, sets: RangeConf[][], cniVersion?: string][] = [
    ["no IP ranges specified", []],
    ["invalid range set 0: empty range set", [[]]],
    ["invalid range set 1: empty range set", [[v4], []]],
    ["invalid range set 0: IP <nil> not v4 nor v6", one({ rangeStart: "10.1.0.1" })],
    ["invalid range set 0: invalid CIDR address: 10.1/24", one({ subnet: "10.1/24" })],
    ["invalid range set 0: Network 10.1.0.0/31 too small to allocate from", one({ subnet: "10.1.0.0/31" })],
    ["invalid range set 0: Network fd00::/127 too small to allocate from", one({ subnet: "fd00::/127" })],
    [
      "invalid range set 0: Network has host bits set. For a subnet mask of length 24 the network address is 10.1.0.0",
      one({ subnet: "10.1.0.7/24" }),
    ],
    ["invalid range set 0: invalid IP address: 10.1.0.x", one({ ...v4, gateway: "10.1.0.x" })],
    ["invalid range set 0: gateway 10.1.1.1 not in network 10.1.0.0/24", one({ ...v4, gateway: "10.1.1.1" })],
    ["invalid range set 0: gateway fd00::1 not in network 10.1.0.0/24", one({ ...v4, gateway: "fd00::1" })],
    ["invalid range set 0: gateway 10.1.0.1 not in network fd00::/64", one({ ...v6, gateway: "10.1.0.1" })],
    [
      "invalid range set 0: RangeStart 10.1.0.255 is after RangeEnd 10.1.0.254 in network 10.1.0.0/24",
      one({ ...v4, rangeStart: "10.1.0.255" }),
    ],
    ["invalid range set 0: RangeStart 10.2.0.5 not in network 10.1.0.0/24", one({ ...v4, rangeStart: "10.2.0.5" })],
    [
      "invalid range set 0: RangeStart 10.1.0.20 not in network 10.1.0.0/24",
      one({ ...v4, rangeStart: "10.1.0.20", rangeEnd: "10.1.0.10" }),
    ],
    [
      "invalid range set 0: RangeStart 10.1.0.11 not in network 10.1.0.0/24",
      one({ ...v4, rangeStart: "10.1.0.11", rangeEnd: "10.1.0.10" }),
    ],
    ["invalid range set 0: RangeEnd 10.2.0.5 not in network 10.1.0.0/24", one({ ...v4, rangeEnd: "10.2.0.5" })],
    ["invalid range set 0: RangeEnd 10.1.0.0 not in network 10.1.0.0/24", one({ ...v4, rangeEnd: "10.1.0.0" })],
    ["invalid range set 0: RangeStart fd00::5 not in network 10.1.0.0/24", one({ ...v4, rangeStart: "fd00::5" })],
    ["invalid range set 0: mixed address families", [[v4, v6]]],
    [
      "invalid range set 0: subnets 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126 overlap",
      [[v4, { subnet: "10.1.0.0/25" }]],
    ],
    ["range set 0 overlaps with 1", [[v4], [{ subnet: "10.1.0.0/16" }], [v6]]],
    ["range set 1 overlaps with 2", [[v6], [{ subnet: "10.2.0.0/16" }, v4], [{ subnet: "10.1.0.0/16" }]]],
    ["range set 0 overlaps with 2", [[v4], [v6], [{ subnet: "10.1.0.0/16" }]]],
    [
      "CNI version 0.2.0 does not support more than 1 address per family",
      [[v4], [{ subnet: "10.2.0.0/24" }]],
      "0.2.0",
    ],
    ["CNI version 0.1.0 does not support more than 1 address per family", [[v6], [{ subnet: "fd01::/64" }]], "0.1.0"],
  ];
  test.each(cases.map(([message, ...rest]) => [message, rest] as const))("%s", (message, [sets, cniVersion]) => {
    expect(() => plan(sets, cniVersion)).toThrow(expect.objectContaining({ code: 7, message }));
  });

  test("but one address of each family is fine for old versions, and more for newer ones", () => {
    expect(plan([[v4], [v6]], "0.2.0")).toHaveLength(2);
    expect(plan([[v4], [{ subnet: "10.2.0.0/24" }]], "0.3.0")).toHaveLength(2);
  });

  test("and parts of one subnet do not overlap when their ends do not", () => {
    const halves = [{ ...v4, rangeEnd: "10.1.0.99" }, { ...v4, rangeStart: "10.1.0.100" }];
    expect(plan([halves])[0]).toHaveLength(2);
    expect(plan([halves.toReversed()])[0]).toHaveLength(2);
    expect(plan(halves.toReversed().map((half) => [half]))).toHaveLength(2);
  });

  test("but they do when one ends with the address that the other starts with, whichever comes first", () => {
    const low = { ...v4, rangeEnd: "10.1.0.100" }, high = { ...v4, rangeStart: "10.1.0.100" };
    expect(() => plan([[low, high]])).toThrow("subnets 10.1.0.1-10.1.0.100 and 10.1.0.100-10.1.0.254 overlap");
    expect(() => plan([[high, low]])).toThrow("subnets 10.1.0.100-10.1.0.254 and 10.1.0.1-10.1.0.100 overlap");
  });
});

test("a set has room for what its ranges have, and an address is in one of them", () => {
  const [set] = plan([[{ subnet: "10.1.0.0/29" }, { subnet: "10.1.0.8/29", gateway: "10.1.0.15" }]]);
  expect(capacityOf(set!)).toBe(5n + 6n);
  const at = (text: string) => set!.findIndex((range) => range === rangeOf(set!, parseAddress(text)!));
  expect(["10.1.0.6", "10.1.0.7", "10.1.0.9", "10.1.0.14", "10.1.0.15"].map(at)).toEqual([0, -1, 1, 1, -1]);
});

test("isInRange() agrees with counting", () => {
  const lastByte = fc.integer({ min: 0, max: 255 });
  fc.assert(fc.property(lastByte, lastByte, lastByte, (a, b, probe) => {
    const [start, end] = [Math.min(a, b), Math.max(a, b)];
    const [[range]] = plan([[{
      subnet: "10.1.2.0/24",
      rangeStart: `10.1.2.${start}`,
      rangeEnd: `10.1.2.${end}`,
    }]]) as [
      [import("../../src/ipam/range.ts").Range],
    ];
    for (const last of [probe, start - 1, start, end, end + 1].filter((last) => last >= 0 && last <= 255)) {
      expect(isInRange(range, parseAddress(`10.1.2.${last}`)!)).toBe(last >= start && last <= end);
    }
    expect(isInRange(range, parseAddress(`10.1.3.${probe}`)!)).toBe(false);
  }));
});
