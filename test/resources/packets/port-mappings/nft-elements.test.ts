/** Which elements mappings become: runs of ports, keys byte by byte, which elements have a port in common. */
import { expect, test } from "bun:test";
import {
  isSame,
  isV6Map,
  keyOf,
  overlaps,
  placesOf,
  portOf,
  scopeOf,
} from "../../../../src/resources/packets/port-mappings/nft-elements.ts";
import type { PortMapping, PortMappingsSpec } from "../../../../src/resources/packets/port-mappings/spec.ts";

const at = (hostPort: number, containerPort = hostPort, more: Partial<PortMapping> = {}): PortMapping => //
({ protocol: "tcp", hostPort, containerPort, ...more });
const run = (first: number, count: number, more: Partial<PortMapping> = {}) =>
  Array.from({ length: count }, (_, index) => at(first + index, first + index, more));

function specOf(mappings: PortMapping[], more: Partial<PortMappingsSpec> = {}): PortMappingsSpec {
  const owner = { network: "net", containerId: "c1", ifName: "eth0" };
  return { ...owner, backend: "nftables", addresses: ["10.1.0.2/24", "fd00::2/64"], mappings, markBit: 13, ...more };
}

/** `ports_ipv4 8080`, `ranges_ipv4 9000-9015`: without the protocol. */
function placed(mappings: PortMapping[], family: 4 | 6 = 4): string[] {
  const spec = specOf(mappings);
  return placesOf(spec, family, scopeOf(spec, family)).map(({ map, key, keyEnd }) =>
    `${map} ${portOf(key)}${keyEnd === undefined ? "" : `-${portOf(keyEnd)}`}`
  );
}

test("sixteen ports that keep their numbers are a run, in whatever order", () => {
  expect(placed(run(9000, 16).reverse())).toEqual(["ranges_ipv4 9000-9015"]);
  expect(placed(run(9000, 15))).toHaveLength(15);
  expect(placed([...run(9000, 16), ...run(9016, 1, { containerPort: 1 }), ...run(9017, 16)])).toEqual([
    "ports_ipv4 9016",
    "ranges_ipv4 9000-9015",
    "ranges_ipv4 9017-9032",
  ]);
  // A port that is there twice does not stand for the one that is missing.
  expect(placed([at(9000), at(9000), ...run(9002, 14)])).toHaveLength(15);
});

test("runs are of one protocol and one address of the host", () => {
  const mixed = [...run(1, 10), ...run(1, 10, { protocol: "udp" }), ...run(1, 10, { hostIp: "192.0.2.1" })];
  expect(placed(mixed).filter((place) => place.includes("-"))).toEqual([]);
  expect(placed([...run(1, 16, { hostIp: "192.0.2.1" }), ...run(1, 16), ...run(1, 16, { protocol: "udp" })])).toEqual(
    [
      "ranges_ipv4 1-16",
      "ranges_at_ipv4 1-16",
      "ranges_ipv4 1-16",
    ],
  );
});

test("a mapping is of the family of its address, and all addresses are one, however they are written", () => {
  const mappings = [
    at(1, 2),
    at(1, 3, { hostIp: "0.0.0.0" }),
    at(1, 4, { hostIp: "::" }),
    at(5, 6, { hostIp: "::1" }),
  ];
  expect(placed(mappings)).toEqual(["ports_ipv4 1"]);
  expect(placed(mappings, 6)).toEqual(["ports_ipv6 1", "ports_at_ipv6 5"]);
});

test("keys and data, byte by byte: each part fills registers of four", () => {
  expect(keyOf(undefined, 6, 0x1f90).toHex()).toBe("06000000" + "1f900000");
  expect(keyOf(new Uint8Array([192, 0, 2, 1]), 17, 53).toHex()).toBe("c0000201" + "11000000" + "00350000");
  const spec = specOf([at(8080, 80), ...run(9000, 16)]);
  expect(
    placesOf(spec, 4, scopeOf(spec, 4)).map(({ key, keyEnd, data }) =>
      [key, keyEnd, data].map((each) => each?.toHex())
    ),
  )
    .toEqual([
      ["06000000" + "1f900000", undefined, "0a010002" + "00500000"],
      ["06000000" + "23280000", "06000000" + "23370000", "0a010002"],
    ]);
});

test("mappings with conditions on packets have maps of their own; conditions on ports leave mappings out", () => {
  const scope = (conditions: PortMappingsSpec["conditions"]) => scopeOf(specOf([], { conditions }), 4);
  expect(scope(undefined)).toEqual({ name: "ipv4", size: 4, conditions: undefined });
  expect(scopeOf(specOf([]), 6)).toEqual({ name: "ipv6", size: 16, conditions: undefined });
  expect(scope({ 4: { protocol: { value: "tcp" }, ports: { first: 1, last: 2 } } }).name).toBe("ipv4");
  const inLink = { name: "eth0" }, own = scope({ 4: { protocol: { value: "tcp" }, inLink } });
  expect(own).toEqual({ name: expect.stringMatching(/^ipv4_[0-9a-f]{8}$/), size: 4, conditions: { inLink } });
  expect(scope({ 4: { inLink: { name: "eth1" } } }).name).not.toBe(own.name);
});

test("elements overlap that have the address, the protocol and a port in common", () => {
  const key = (port: number, address?: Uint8Array, protocol = 6) => keyOf(address, protocol, port);
  const range = (first: number, last: number) => ({ key: key(first), keyEnd: key(last) });
  for (const port of [0xff, 0x100, 0x110]) {
    expect([port, overlaps(range(0xff, 0x110), { key: key(port) })]).toEqual([port, true]);
    expect([port, overlaps({ key: key(port) }, range(0xff, 0x110))]).toEqual([port, true]);
  }
  for (const port of [0xfe, 0x111]) {
    expect([port, overlaps(range(0xff, 0x110), { key: key(port) })]).toEqual([port, false]);
    expect([port, overlaps({ key: key(port) }, range(0xff, 0x110))]).toEqual([port, false]);
  }
  expect(overlaps(range(1, 5), range(5, 9))).toBe(true);
  expect(overlaps(range(6, 9), range(1, 5))).toBe(false);
  expect(overlaps({ key: key(1) }, { key: key(1, undefined, 17) })).toBe(false);
  const [one, other] = [new Uint8Array([10, 0, 0, 1]), new Uint8Array([10, 0, 0, 2])];
  expect(overlaps({ key: key(1, one) }, { key: key(1, other) })).toBe(false);
  expect(overlaps({ key: key(1, one) }, { key: key(1, one.slice()) })).toBe(true);
});

test("what is not there is the same as nothing else, and a map tells its family", () => {
  const bytes = new Uint8Array([1, 2]);
  expect([
    isSame(undefined, undefined),
    isSame(bytes, bytes.slice()),
    isSame(bytes, undefined),
    isSame(undefined, bytes),
  ])
    .toEqual([true, true, false, false]);
  expect(["ports_ipv6", "ports_ipv6_0123abcd", "ports_ipv4", "ports_at_ipv4_0123abcd"].map(isV6Map))
    .toEqual([true, true, false, false]);
});
