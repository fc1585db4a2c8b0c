/** Addresses and prefixes as text and bytes, beside the platform's own parser and RFC 5952. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isIPv4, isIPv6 } from "node:net";
import {
  canonicalAddress,
  canonicalPrefix,
  compareAddresses,
  contains,
  formatAddress,
  formatPrefix,
  fromBigInt,
  isV6,
  lastOf,
  networkOf,
  offsetAddress,
  overlap,
  parseAddress,
  parsePrefix,
  toBigInt,
} from "../../src/net/address.ts";

/** What Go's net.ParseIP(text).String() answers. */
const addresses: [text: string, canonical: string | undefined][] = [
  ["10.88.0.5", "10.88.0.5"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["::", "::"],
  ["::1", "::1"],
  ["1::", "1::"],
  ["FD00:0:0::0005", "fd00::5"],
  ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["::ffff:10.0.0.1", "10.0.0.1"],
  ["::FFFF:0a00:1", "10.0.0.1"],
  ["::10.0.0.1", "::a00:1"],
  ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
  ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
  ["", undefined],
  ["10.88.0", undefined],
  ["10.88.0.5.6", undefined],
  ["10.88.0.256", undefined],
  ["10.88.0.05", undefined],
  ["10.88.0.", undefined],
  ["10.88.0.-1", undefined],
  ["10.88.0.1 ", undefined],
  ["0x0a.0.0.1", undefined],
  ["1:2:3:4:5:6:7", undefined],
  ["1:2:3:4:5:6:7:8:9", undefined],
  ["1:2:3:4:5:6:7:8::", undefined],
  ["1::2::3", undefined],
  [":::", undefined],
  ["1:::2", undefined],
  [":1:2:3:4:5:6:7", undefined],
  ["12345::", undefined],
  ["g::", undefined],
  ["@::", undefined],
  ["\u0011::", undefined],
  ["fe80::1%eth0", undefined],
  ["::10.0.0.01", undefined],
  ["1:2:3:4:5:6:7:1.2.3.4", undefined],
  ["1.2.3.4::", undefined],
];

describe("parseAddress()", () => {
  for (const [text, canonical] of addresses) {
    test(`${JSON.stringify(text)} is ${canonical ?? "no address"}`, () => {
      expect(canonicalAddress(text)).toBe(canonical);
    });
  }

  test("accepts what the platform accepts", () => {
    const part = fc.oneof(
      fc.constantFrom("", "0", "00", "ffff", "1.2.3.4", "g", "10000"),
      fc.string({ maxLength: 2 }),
    );
    const text = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.array(part, { maxLength: 9 }).map((parts) => parts.join(":")),
      fc.array(fc.oneof(fc.nat(300).map(String), part), { maxLength: 5 }).map((parts) => parts.join(".")),
    );
    fc.assert(
      fc.property(text, (candidate) => {
        const valid = isIPv4(candidate) || (isIPv6(candidate) && !candidate.includes("%"));
        expect(parseAddress(candidate) !== undefined).toBe(valid);
      }),
      { numRuns: 2000 },
    );
  });
});

const v4 = fc.uint8Array({ minLength: 4, maxLength: 4 });
// Many zeros, so that runs of them occur.
const v6 = fc.array(fc.oneof(fc.constant(0), fc.nat(255)), { minLength: 16, maxLength: 16 })
  .map((bytes) => new Uint8Array(bytes))
  .filter((bytes) => bytes.slice(0, 10).some((byte) => byte !== 0) || bytes[10] !== 255 || bytes[11] !== 255);
const address = fc.oneof(v4, v6);
const prefix = address.chain((bytes) => fc.nat(bytes.length * 8).map((bits) => ({ bytes, bits })));

describe("for any address", () => {
  test("its text means the same address", () => {
    fc.assert(fc.property(address, (bytes) => expect(parseAddress(formatAddress(bytes))).toEqual(bytes)));
  });

  test("its text is what a URL has for it (RFC 5952)", () => {
    fc.assert(fc.property(v6, (bytes) => {
      const long = Array.from({ length: 8 }, (_, i) => ((bytes[i * 2]! << 8) | bytes[i * 2 + 1]!).toString(16));
      expect(`[${formatAddress(bytes)}]`).toBe(new URL(`http://[${long.join(":")}]/`).hostname);
    }));
  });

  test("its number is its number", () => {
    fc.assert(fc.property(address, (bytes) => expect(fromBigInt(toBigInt(bytes), bytes.length)).toEqual(bytes)));
    expect(toBigInt(parseAddress("10.0.0.1")!)).toBe(0x0a000001n);
  });

  test("order is that of the numbers", () => {
    fc.assert(fc.property(fc.oneof(fc.tuple(v4, v4), fc.tuple(v6, v6)), ([one, other]) => {
      const difference = toBigInt(one) - toBigInt(other);
      expect(Math.sign(compareAddresses(one, other))).toBe(difference < 0n ? -1 : difference > 0n ? 1 : 0);
    }));
    expect(compareAddresses(parseAddress("255.0.0.1")!, parseAddress("::1")!)).toBeLessThan(0);
  });
});

test("offsetAddress() ends with the address space", () => {
  const from = (text: string, distance: bigint) => {
    const found = offsetAddress(parseAddress(text)!, distance);
    return found && formatAddress(found);
  };
  expect(from("10.0.0.255", 1n)).toBe("10.0.1.0");
  expect(from("10.0.0.0", -1n)).toBe("9.255.255.255");
  expect(from("255.255.255.255", 1n)).toBeUndefined();
  expect(from("0.0.0.0", -1n)).toBeUndefined();
  expect(from("fd00::ffff:ffff:ffff:ffff", 1n)).toBe("fd00:0:0:1::");
});

/** What Go's net.ParseCIDR answers, host bits kept. */
const prefixes: [text: string, canonical: string | undefined][] = [
  ["10.1.2.3/8", "10.1.2.3/8"],
  ["10.1.2.3/0", "10.1.2.3/0"],
  ["10.1.2.3/032", "10.1.2.3/32"],
  ["FD00::5/064", "fd00::5/64"],
  ["::ffff:1.1.1.1/120", "1.1.1.1/24"],
  ["::ffff:1.1.1.1/90", "1.1.1.1/0"],
  ["::ffff:1.1.1.1/128", "1.1.1.1/32"],
  ["10.1.2.3", undefined],
  ["10.1.2.3/", undefined],
  ["10.1.2.3/33", undefined],
  ["10.1.2.3/-1", undefined],
  ["10.1.2.3/8/8", undefined],
  ["10.1.2.3/ 8", undefined],
  ["fd00::/129", undefined],
  ["::ffff:1.1.1.1/129", undefined],
  ["10.1/8", undefined],
  ["/8", undefined],
  ["", undefined],
];

describe("parsePrefix()", () => {
  for (const [text, canonical] of prefixes) {
    test(`${JSON.stringify(text)} is ${canonical ?? "no prefix"}`, () =>
      expect(canonicalPrefix(text)).toBe(canonical));
  }

  test("reads what formatPrefix() writes", () => {
    fc.assert(fc.property(prefix, (original) => expect(parsePrefix(formatPrefix(original))).toEqual(original)));
  });
});

describe("for any prefix", () => {
  test("its network is its lowest address, the last one its highest, and both belong to it", () => {
    fc.assert(fc.property(prefix, ({ bytes, bits }) => {
      const size = 1n << BigInt(bytes.length * 8 - bits);
      const lowest = toBigInt(bytes) / size * size;
      expect(toBigInt(networkOf({ bytes, bits }))).toBe(lowest);
      expect(toBigInt(lastOf({ bytes, bits }))).toBe(lowest + size - 1n);
      expect(contains({ bytes, bits }, networkOf({ bytes, bits }))).toBe(true);
      expect(contains({ bytes, bits }, lastOf({ bytes, bits }))).toBe(true);
    }));
  });

  test("an address belongs to it when the two share its bits", () => {
    fc.assert(fc.property(prefix, address, ({ bytes, bits }, other) => {
      const shift = BigInt(bytes.length * 8 - bits);
      const belongs = bytes.length === other.length && toBigInt(bytes) >> shift === toBigInt(other) >> shift;
      expect(contains({ bytes, bits }, other)).toBe(belongs);
    }));
  });

  test("the prefix itself is left alone", () => {
    const original = parsePrefix("10.1.2.3/8")!;
    networkOf(original);
    lastOf(original);
    expect(formatPrefix(original)).toBe("10.1.2.3/8");
  });
});

test("isV6() looks at the address, with or without prefix length", () => {
  expect(["fd00::1", "fd00::/64", "10.0.0.1", "10.0.0.0/8", "::ffff:10.0.0.1"].map(isV6))
    .toEqual([true, true, false, false, false]);
});

test("prefixes overlap where one has the other's network", () => {
  const overlaps = (one: string, other: string) => overlap(parsePrefix(one)!, parsePrefix(other)!);
  expect(overlaps("10.1.2.3/24", "10.1.0.0/16")).toBe(true);
  expect(overlaps("10.1.0.0/16", "10.1.2.3/24")).toBe(true);
  expect(overlaps("10.1.2.3/24", "10.1.3.3/24")).toBe(false);
  expect(overlaps("10.1.2.3/24", "11.1.2.3/24")).toBe(false);
  expect(overlaps("0.0.0.0/0", "fd00::/8")).toBe(false);
});
