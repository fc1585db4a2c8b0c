/** The compiled validators accept and refuse what their zod schemas do, with the texts that people see. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { z } from "zod";
import { outdated } from "../../compile/generate.ts";
import { CniError } from "../../src/cni/error.ts";
import { result01, result03, result10 } from "../../src/cni/result.schema.ts";
import { decodeResult01, decodeResult03, decodeResult10 } from "../../src/cni/result.validate.gen.ts";
import { hostLocalConf } from "../../src/plugins/ipam/host-local/host-local.schema.ts";
import { validateHostLocalConf } from "../../src/plugins/ipam/host-local/host-local.validate.gen.ts";
import { staticConf } from "../../src/plugins/ipam/static/static.schema.ts";
import { validateStaticConf } from "../../src/plugins/ipam/static/static.validate.gen.ts";
import { bridgeConf } from "../../src/plugins/main/bridge/bridge.schema.ts";
import { validateBridgeConf } from "../../src/plugins/main/bridge/bridge.validate.gen.ts";
import { bandwidthConf } from "../../src/plugins/meta/bandwidth/bandwidth.schema.ts";
import { validateBandwidthConf } from "../../src/plugins/meta/bandwidth/bandwidth.validate.gen.ts";
import { tuningConf } from "../../src/plugins/meta/tuning/tuning.schema.ts";
import { validateTuningConf } from "../../src/plugins/meta/tuning/tuning.validate.gen.ts";
import { loopbackConf } from "../../src/plugins/main/loopback/loopback.schema.ts";
import { validateLoopbackConf } from "../../src/plugins/main/loopback/loopback.validate.gen.ts";
import { asGoReads, documents } from "./schema-documents.ts";

test("the generated files say what the schemas say (else: npm run generate)", async () => {
  expect([...(await outdated()).keys()]).toEqual([]);
});

const pairs: [name: string, schema: z.ZodType, validate: (document: unknown) => unknown][] = [
  ["bridge", bridgeConf, validateBridgeConf],
  ["loopback", loopbackConf, validateLoopbackConf],
  ["host-local", hostLocalConf, validateHostLocalConf],
  ["static", staticConf, validateStaticConf],
  ["bandwidth", bandwidthConf, validateBandwidthConf],
  ["tuning", tuningConf, validateTuningConf],
  ["results up to 0.2.0", result01, decodeResult01],
  ["results up to 0.4.0", result03, decodeResult03],
  ["results from 1.0.0 on", result10, decodeResult10],
];

/** The path of an issue as our messages write it: `ipam.ranges[0][1].subnet`. */
function written(path: PropertyKey[]): string {
  return path.map((step) => typeof step === "number" ? `[${step}]` : `.${String(step)}`).join("").replace(/^\./, "");
}

describe("a compiled validator and zod agree on every document", () => {
  for (const [name, schema, validate] of pairs) {
    test(name, () => {
      let accepted = 0, refused = 0;
      fc.assert(
        fc.property(documents(schema), (document) => {
          const expected = schema.safeParse(asGoReads(schema, document ?? {}));
          let actual: unknown;
          try {
            actual = validate(document);
          } catch (error) {
            if (!(error instanceof CniError)) throw error;
            expect(expected.success).toBe(false);
            expect([2, 7]).toContain(error.code);
            const places = expected.error!.issues.map(({ path }) =>
              path.length ? JSON.stringify(written(path)) : "the document"
            );
            expect(places.some((place) => error.message.includes(place))).toBe(true);
            refused++;
            return;
          }
          expect(expected.success).toBe(true);
          expect(actual).toEqual(expected.data);
          accepted++;
        }),
        { numRuns: 2000 },
      );
      // Were one of them rare, the agreement would say little.
      expect(Math.min(accepted, refused)).toBeGreaterThan(100);
    });
  }
});

describe("what a validator says", () => {
  const base = { name: "net", type: "bridge" };
  const cases: [part: unknown, code: number, message: string][] = [
    [{ mtu: "1500" }, 7, '"mtu" must be an integer, got "1500"'],
    [{ mtu: 0.5 }, 7, '"mtu" must be an integer, got 0.5'],
    [{ MTU: 2 ** 53 }, 7, '"mtu" must be an integer, got 9007199254740992'],
    [{ portIsolation: "true" }, 7, '"portIsolation" must be true or false, got "true"'],
    [{ bridge: 5 }, 7, '"bridge" must be a string, got 5'],
    [{ ipam: [] }, 7, '"ipam" must be an object, got []'],
    [{ dns: { search: ["a", null] } }, 7, '"dns.search[1]" must be a string, got null'],
    [{ capabilities: { mac: 1 } }, 7, '"capabilities.mac" must be true or false, got 1'],
    [{ vlan: 4095 }, 7, '"vlan": invalid VLAN ID 4095 (must be between 0 and 4094)'],
    [{ vlan: -1 }, 7, '"vlan": invalid VLAN ID -1 (must be between 0 and 4094)'],
    [{ vlanTrunk: [{ minID: 0 }] }, 7, '"vlanTrunk[0].minID": incorrect trunk minID parameter'],
    [{ ipMasqBackend: "pf" }, 2, '"ipMasqBackend": unknown ipmasq backend "pf"'],
    [
      { "CNI.dev/valid-attachments": [{ ifname: "eth0" }] },
      7,
      '"cni.dev/valid-attachments[0].containerID" is missing',
    ],
  ];
  for (const [part, code, message] of cases) {
    test(`of ${JSON.stringify(part)}`, () => {
      try {
        validateBridgeConf({ ...base, ...part as object });
      } catch (error) {
        expect([(error as CniError).code, (error as CniError).message])
          .toEqual([code, `failed to load netconf: ${message}`]);
        return;
      }
      throw new Error("was not refused");
    });
  }

  test("of addresses is what Go says of them", () => {
    const ipam = (part: unknown) => () => validateHostLocalConf({ ...base, ipam: part });
    expect(ipam({ subnet: "10.1" })).toThrow('"ipam.subnet": invalid CIDR address: 10.1');
    expect(ipam({ gateway: "x" })).toThrow('"ipam.gateway": invalid IP address: x');
    expect(() => validateStaticConf({ ...base, ipam: { addresses: [{ address: "1.1.1.1" }] } }))
      .toThrow("the 'address' field is expected to be in CIDR notation, got: '1.1.1.1'");
  });

  test("shortens what is long", () => {
    expect(() => validateBridgeConf({ ...base, mtu: "x".repeat(500) })).toThrow(/got "x{76}\.\.\.$/);
  });
});

describe("reading as Go does", () => {
  const read = (text: string) => validateBridgeConf(JSON.parse(text));

  test("the last spelling of a key counts, and null leaves what was there", () => {
    expect(read('{"name":"n","mtu":1,"MTU":2}').mtu).toBe(2);
    expect(read('{"name":"n","MTU":2,"mtu":1,"Mtu":null}').mtu).toBe(1);
  });

  test("an absent key has the default, null and the empty text of an address are absent", () => {
    expect(read('{"name":"n","bridge":null}').bridge).toBe("cni0");
    expect(validateHostLocalConf({ name: "n", ipam: { gateway: "" } }).ipam?.gateway).toBeUndefined();
  });

  test("an empty list is not an absent one", () => {
    expect(read('{"name":"n","dns":{"search":[]}}').dns).toEqual({ search: [] });
  });

  test("1500.0 is an integer, unlike in Go: JSON has one kind of number", () => {
    expect(read('{"name":"n","mtu":1500.0}').mtu).toBe(1500);
  });

  test("keys that are data keep their case, and nothing is inherited", () => {
    const { capabilities, args } = validateLoopbackConf(JSON.parse(
      '{"name":"n","capabilities":{"Mac":true},"args":{"__proto__":{"polluted":1},"CNI":{}}}',
    ));
    expect(Object.keys(capabilities!)).toEqual(["Mac"]);
    expect(capabilities!.toString).toBeUndefined();
    expect(args!.polluted).toBeUndefined();
    expect(Object.keys(args!)).toEqual(["__proto__", "CNI"]);
  });
});
