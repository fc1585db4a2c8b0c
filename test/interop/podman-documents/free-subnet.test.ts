/** Subnets for networks without any: they overlap nothing that is used, and are found when there are free ones. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { finishNetwork } from "../../../src/frontends/netavark/create/network.ts";
import { freeSubnet4, freeSubnet6 } from "../../../src/interop/podman-documents/free-subnet.ts";
import { prefixOf } from "../../../src/interop/podman-documents/network.ts";
import { contains, formatAddress, fromBigInt, networkOf, overlap, parseAddress } from "../../../src/net/address.ts";
import { creation } from "../../support/netavark/creation.ts";
import { randomBelow } from "../../support/random.ts";

const POOLS = [{ base: "10.64.0.0/26", size: 30 }, { base: "10.65.0.0/27", size: 29 }];
/** Every entry of the pools, in their order. */
const ENTRIES = [
  ...Array.from({ length: 16 }, (_, index) => `10.64.0.${index * 4}/30`),
  ...Array.from({ length: 4 }, (_, index) => `10.65.0.${index * 8}/29`),
];

/** Mostly near the pools, of any size. */
const used = fc.tuple(
  fc.oneof(fc.integer({ min: 0x0a40_0000, max: 0x0a40_0060 }), fc.integer({ min: 0x0a40_ff00, max: 0x0a41_0030 })),
  fc.integer({ min: 24, max: 32 }),
).map(([address, bits]) => `${formatAddress(fromBigInt(BigInt(address), 4))}/${bits}`);

test("the first entry that overlaps nothing", () => {
  fc.assert(
    fc.property(fc.array(used, { maxLength: 30 }), (taken) => {
      const expected = ENTRIES.find((entry) => !taken.some((other) => overlap(prefixOf(entry), prefixOf(other))));
      if (expected === undefined) expect(() => freeSubnet4(POOLS, taken)).toThrow("could not find free subnet");
      else expect(freeSubnet4(POOLS, taken)).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});

test("a pool in which nearly everything is used, and all that is not asked about", () => {
  const pools = [{ base: "10.0.0.0/8", size: 24 }];
  const taken = Array.from({ length: 65535 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`).reverse();
  expect(freeSubnet4(pools, ["fd00::/8", "11.0.0.0/8", ...taken])).toBe("10.255.255.0/24");
  expect(() => freeSubnet4(pools, [...taken, "10.255.255.7/32"])).toThrow("could not find free subnet");
  expect(freeSubnet4([{ base: "255.255.255.0/24", size: 25 }], ["255.255.255.0/25"])).toBe("255.255.255.128/25");
  expect(freeSubnet4([{ base: "0.0.0.0/0", size: 1 }], [])).toBe("0.0.0.0/1");
  expect(() => freeSubnet4([{ base: "10.0.0.0/24", size: 23 }], [])).toThrow("could not find free subnet");
  const single = [{ base: "10.0.0.0/31", size: 32 }];
  expect(freeSubnet4(single, ["10.0.0.0/32"])).toBe("10.0.0.1/32");
  expect(() => freeSubnet4(single, ["10.0.0.0/31"])).toThrow("could not find free subnet");
});

test("IPv6 is tried again until it is free", () => {
  const sources = [1, 1, 2, 3], seen: number[] = [];
  const random = (count: number) => {
    seen.push(count);
    return new Uint8Array(count).fill(sources[seen.length - 1]!);
  };
  const taken = ["fd01:101:101::/48", "10.0.0.0/8", "fd02:202:202:202::7/128"];
  expect(freeSubnet6(taken, random)).toBe("fd03:303:303:303::/64");
  expect(seen).toEqual([7, 7, 7, 7]);
  expect(() => freeSubnet6(["fd00::/8"], (count) => new Uint8Array(count))).toThrow(
    "failed to get random ipv6 subnet",
  );
});

const place = {
  linkNames: () => [],
  now: () => new Date(0),
  askForeignDriver: () => expect.unreachable(),
  random: (count: number) => Uint8Array.from({ length: count }, () => randomBelow(256)),
};

test("a driver that is another program may choose what is used", () => {
  const chosen = { ...creation({ driver: "foreign" }).network, subnets: [{ subnet: "10.70.0.0/24" }] };
  const document = creation({ driver: "foreign" }, { subnets: ["10.0.0.0/8"] });
  const network = finishNetwork(document, { ...place, askForeignDriver: () => chosen });
  expect(network.subnets).toEqual([{ subnet: "10.70.0.0/24", gateway: "10.70.0.1" }]);
});

test("a network's subnets are apart, and each has its gateway", () => {
  fc.assert(
    fc.property(
      fc.array(used, { maxLength: 8 }),
      fc.uniqueArray(fc.constantFrom("10.70.0.0/24", "fd70::/64", "fd71::9/64", "10.71.0.9/29"), { maxLength: 3 }),
      fc.boolean(),
      (subnets, asked, ipv6) => {
        const document = creation(
          { ipv6_enabled: ipv6, subnets: asked.map((subnet) => ({ subnet })) },
          { subnets },
        );
        const network = finishNetwork(document, place), made = network.subnets!.map(({ subnet }) => prefixOf(subnet));
        made.forEach((one, index) => {
          for (const other of made.slice(index + 1)) expect(overlap(one, other)).toBe(false);
          for (const other of subnets) expect(overlap(one, prefixOf(other))).toBe(false);
          const gateway = parseAddress(network.subnets![index]!.gateway!)!;
          expect(contains(one, gateway)).toBe(true);
          expect(gateway).not.toEqual(networkOf(one));
        });
        expect(network.subnets!.slice(0, asked.length).map(({ subnet }) => subnet)).toEqual(asked);
        expect(network.ipv6_enabled).toBe(ipv6 || made.some(({ bytes }) => bytes.length === 16));
        if (ipv6) expect(new Set(made.map(({ bytes }) => bytes.length))).toEqual(new Set([4, 16]));
      },
    ),
  );
});
