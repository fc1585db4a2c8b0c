/** Which mappings are of which family and allowed by conditions, and what they claim of the host's ports. */
import { expect, test } from "bun:test";
import {
  addressOf,
  appliesTo,
  type Conditions,
  hostAddress,
  isAllowed,
  portClaimantOf,
  type PortMapping,
  type PortMappingsSpec,
} from "../../../../src/resources/packets/port-mappings/spec.ts";

const web: PortMapping = { protocol: "tcp", hostPort: 8080, containerPort: 80 };
const spec: PortMappingsSpec = {
  network: "net",
  containerId: "c1",
  ifName: "eth0",
  backend: "nftables",
  addresses: ["nonsense", "10.1.0.2/24", "10.1.0.3/24", "fd00::2/64"],
  mappings: [web],
  markBit: 13,
};

test("mappings lead to the first address of the family", () => {
  expect(addressOf(spec, 4)).toMatchObject({ bytes: new Uint8Array([10, 1, 0, 2]), bits: 24 });
  expect(addressOf(spec, 6)).toMatchObject({ bits: 64 });
  expect(addressOf({ ...spec, addresses: ["10.1.0.2/24"] }, 6)).toBeUndefined();
});

const range = { first: 8080, last: 8081 };
const allowed: [Conditions, boolean][] = [
  [{}, true],
  [{ protocol: { value: "tcp" } }, true],
  [{ protocol: { value: "udp" } }, false],
  [{ protocol: { value: "tcp", not: true } }, false],
  [{ protocol: { value: "udp", not: true } }, true],
  [{ ports: range }, true],
  [{ ports: { first: 8079, last: 8080 } }, true],
  [{ ports: { first: 8081, last: 9000 } }, false],
  [{ ports: { first: 1, last: 8079 } }, false],
  [{ ports: { ...range, not: true } }, false],
  [{ ports: { first: 1, last: 8079, not: true } }, true],
  [{ ports: range, protocol: { value: "udp" } }, false],
];
test.each(allowed)("%j", (conditions, isTrue) => {
  expect(isAllowed(conditions, web)).toBe(isTrue);
  expect(appliesTo({ ...spec, conditions: { 6: conditions } }, web, 6)).toBe(isTrue);
  expect(appliesTo({ ...spec, conditions: { 6: conditions } }, web, 4)).toBe(true);
});

test("a mapping is for one address of the host, or for all of a family, or of both", () => {
  const of = (hostIp?: string) => {
    const mapping = { ...web, hostIp };
    return [appliesTo(spec, mapping, 4), appliesTo(spec, mapping, 6), hostAddress(mapping)?.toHex()];
  };
  expect(of()).toEqual([true, true, undefined]);
  expect(of("0.0.0.0")).toEqual([true, false, undefined]);
  expect(of("::")).toEqual([false, true, undefined]);
  expect(of("192.0.2.1")).toEqual([true, false, "c0000201"]);
  expect(of("::1")).toEqual([false, true, "00".repeat(15) + "01"]);
});

test("a container claims its mappings' ports, of each family in which it has an address", () => {
  const mappings = [web, { ...web, hostPort: 53, protocol: "udp", hostIp: "192.0.2.1" } as const];
  const at = new Uint8Array([192, 0, 2, 1]);
  expect(portClaimantOf({ ...spec, mappings })).toEqual({
    network: "net",
    containerId: "c1",
    way: "nftables",
    claims: [
      { family: 4, protocol: "tcp", port: 8080, at: undefined },
      { family: 6, protocol: "tcp", port: 8080, at: undefined },
      { family: 4, protocol: "udp", port: 53, at },
    ],
  });
  expect(portClaimantOf({ ...spec, mappings, addresses: ["fd00::2/64"] })).toMatchObject({
    claims: [{ family: 6, port: 8080 }],
    unreached: { ports: [{ protocol: "udp", port: 53, hostIp: "192.0.2.1" }], families: [6] },
  });
});

test("nobody reaches a container by ::1, and it is in no rule but those of the reference plugin", () => {
  const mapping = { ...web, hostIp: "::1" };
  expect(portClaimantOf({ ...spec, mappings: [mapping] })).toMatchObject({
    claims: [],
    unreached: { ports: [{ protocol: "tcp", port: 8080, hostIp: "::1" }], families: [4, 6] },
  });
  expect(appliesTo({ ...spec, sparesLoopback: true }, mapping, 6)).toBe(false);
  expect(appliesTo(spec, mapping, 6)).toBe(true);
});

test("what conditions leave out is asked for by others", () => {
  const conditions = { 4: { protocol: { value: "udp" } }, 6: { protocol: { value: "udp" } } } as const;
  expect(portClaimantOf({ ...spec, mappings: [web], conditions })).toMatchObject({
    claims: [],
    unreached: undefined,
  });
});
