/** Random changes of documents: each document is accepted, or refused with a text that says why. */
import { expect, test } from "bun:test";
import { parseOptions } from "../../../src/frontends/netavark/program/arguments.ts";
import { create } from "../../../src/frontends/netavark/program/create.ts";
import { globalOptionsOf } from "../../../src/frontends/netavark/program/call.ts";
import { readContainerCall } from "../../../src/interop/podman-documents/container-call.ts";
import { creation } from "../../support/netavark/creation.ts";
import fc from "fast-check";

type Path = (string | number)[];

/** The paths of everything in the document. */
function pathsIn(value: unknown, at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [at];
  return [
    at,
    ...Object.entries(value).flatMap(([key, part]) =>
      pathsIn(part, [...at, Array.isArray(value) ? Number(key) : key])
    ),
  ];
}

function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  const copy = (Array.isArray(value) ? [...value] : { ...value as object }) as Record<string | number, unknown>;
  copy[key] = replaced(copy[key], rest, by);
  return copy;
}

const texts = fc.constantFrom(
  "",
  "10.0.0.0/8",
  "::/0",
  "fd00::1",
  "0.0.0.0/0",
  "255.255.255.255/32",
  "none",
  "dhcp",
  "macvlan",
  "ipvlan",
  "true",
  "4294967296",
  "../../etc",
  "a\u0000b",
  "\ud800",
  "x".repeat(5000),
);
const anything = fc.oneof(
  texts,
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(null, -1, 2 ** 53, 0.5, true, [], {}, [[]], { __proto__: null }),
);

function hostile(document: object): fc.Arbitrary<string> {
  const change = fc.tuple(fc.constantFrom(...pathsIn(document)), anything);
  return fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => {
    let changed: unknown = document;
    for (const [path, value] of changes) {
      try {
        changed = replaced(changed, path, value);
      } catch {
        // An earlier change removed the place.
      }
    }
    return JSON.stringify(changed);
  });
}

/** The text of the error, and no error of this program's own: those are of other classes. */
function refusal(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    expect(error).not.toBeInstanceOf(TypeError);
    expect(error).not.toBeInstanceOf(RangeError);
    expect(error).not.toBeInstanceOf(SyntaxError);
    return (error as Error).message;
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);

test("create", () => {
  const document = creation(
    {
      network_interface: "b0",
      ipv6_enabled: true,
      options: { mtu: "1500", mode: "managed", vlan: "3", outbound_addr4: "192.0.2.1" },
      ipam_options: { driver: "host-local" },
      subnets: [{
        subnet: "10.1.0.0/24",
        gateway: "10.1.0.1",
        lease_range: { start_ip: "10.1.0.2", end_ip: "10.1.0.9" },
      }],
      routes: [{ destination: "10.2.0.0/24", gateway: "10.1.0.3", metric: 3, route_type: "unicast" }],
      network_dns_servers: ["9.9.9.9"],
      labels: { a: "b" },
    },
    { names: { other: "x" }, interfaces: ["b1"], subnets: ["10.9.0.0/16", "fd00::/16"] },
  );
  const options = globalOptionsOf(parseOptions(["--plugin-directory=/none"], [
    { long: "plugin-directory", value: "D", repeats: true, what: "" },
  ]));
  const call = (text: string) => ({
    options,
    operand: "",
    values: () => [],
    hasFile: false,
    readInput: () => bytes(text),
  });
  expect(refusal(() => create(call(JSON.stringify(document))))).toBeUndefined();
  let refused = 0;
  fc.assert(
    fc.property(hostile(document), (text) => {
      const why = refusal(() => create(call(text)));
      if (why !== undefined) expect(why).not.toBe("");
      refused += why === undefined ? 0 : 1;
    }),
    { numRuns: 3000 },
  );
  // The documents are not all refused for the same small thing.
  expect(refused).toBeGreaterThan(500);
  expect(refused).toBeLessThan(2990);
});

test("setup and teardown", () => {
  const document = {
    container_id: "c1",
    container_name: "cup",
    container_hostname: "cup",
    port_mappings: [{ container_port: 1, host_port: 2, range: 3, host_ip: "", protocol: "tcp" }],
    dns_servers: ["9.9.9.9"],
    networks: {
      orchard: { interface_name: "eth0", static_ips: ["10.1.0.2"], static_mac: "aa:bb:cc:dd:ee:ff", aliases: ["a"] },
    },
    network_info: { orchard: creation({ subnets: [{ subnet: "10.1.0.0/24" }] }).network },
  };
  expect(refusal(() => readContainerCall(bytes(JSON.stringify(document))))).toBeUndefined();
  fc.assert(
    fc.property(hostile(document), (text) => {
      const why = refusal(() => readContainerCall(bytes(text)));
      if (why !== undefined) expect(why).not.toBe("");
    }),
    { numRuns: 3000 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => void refusal(() => readContainerCall(noise))),
  );
});
