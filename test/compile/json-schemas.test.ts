/**
 * Our published JSON Schemas agree with the two that the CNI project publishes (fixtures/), except where the
 * specification says otherwise. docs/quirks/general.md, "JSON Schemas", lists each difference.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { join } from "node:path";
import { z } from "zod";
import { networkConfig, networkConfigList } from "../../src/cni/network.schema.ts";
import { result10 } from "../../src/cni/result.schema.ts";
import { jsonSchema, publishedText } from "../../compile/json-schemas.ts";
import { documents } from "./schema-documents.ts";

type Json = { [key: string]: unknown };

const read = (path: string): Promise<Json> => Bun.file(join(import.meta.dir, path)).json();

/** `format` only annotates unless a validator is told otherwise, and here it would refuse IPv6. */
function withoutFormats(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutFormats);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => key !== "format" || typeof value !== "string");
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutFormats(value)]));
}

async function judge(path: string): Promise<(document: unknown) => boolean> {
  const schema = z.fromJSONSchema(withoutFormats(await read(path)) as Parameters<typeof z.fromJSONSchema>[0]);
  return (document) => schema.safeParse(document).success;
}

const theirs = {
  config: await judge("fixtures/network-config.schema.json"),
  result: await judge("fixtures/result.schema.json"),
};
const ours = {
  config: await judge("../../schemas/network-config.json"),
  result: await judge("../../schemas/result.json"),
  bridge: await judge("../../schemas/bridge.json"),
  hostLocal: await judge("../../schemas/host-local.json"),
};

/** Visits every object of the document, from the outside in. */
function visit(value: unknown, edit: (object: Json) => void): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) edit(value as Json);
  for (const part of Object.values(value)) visit(part, edit);
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The document without what the two are known to judge differently. */
function comparable(document: unknown): unknown {
  const copy = structuredClone(document);
  // Keys that the published schemas of the CNI project do not know.
  visit(copy, (object) => {
    for (const key of ["priority", "table", "scope"]) delete object[key];
  });
  if (!isObject(copy)) return copy;
  if (isObject(copy.runtimeConfig)) {
    for (const key of ["ips", "deviceID", "infinibandGUID"]) delete copy.runtimeConfig[key];
    if (isObject(copy.runtimeConfig.dns)) {
      delete copy.runtimeConfig.dns.servers;
      delete copy.runtimeConfig.dns.searches;
    }
  }
  // The specification's own example has a prevResult without a version.
  if (isObject(copy.prevResult)) copy.prevResult.cniVersion ??= "1.0.0";
  // The specification forbids what no file name can have.
  for (const object of [copy, copy.ipam]) {
    if (isObject(object) && typeof object.type === "string") {
      object.type = object.type.replaceAll(/[/\\]/g, "") || "x";
    }
  }
  return copy;
}

describe("documents are judged as the CNI project's schemas judge them", () => {
  const same = (schema: z.ZodType, one: (d: unknown) => boolean, other: (d: unknown) => boolean) => {
    let accepted = 0, refused = 0;
    const required = { cniVersion: "1.0.0", name: "net", type: "bridge" };
    const complete = documents(schema).map((document) =>
      isObject(document) ? { ...document, ...required } : document
    );
    const some = fc.oneof({ weight: 3, arbitrary: complete }, documents(schema));
    fc.assert(
      fc.property(some.map(comparable), (document) => {
        expect(one(document)).toBe(other(document));
        if (one(document)) accepted++;
        else refused++;
      }),
      { numRuns: 3000 },
    );
    expect(Math.min(accepted, refused)).toBeGreaterThan(100);
  };

  test("network configurations", () => same(networkConfig, ours.config, theirs.config));
  test("results", () => same(result10, ours.result, theirs.result));
});

describe("the examples published with those schemas", () => {
  test("are accepted", async () => {
    const [config] = (await read("fixtures/network-config.schema.json")).examples as Json[];
    const [result] = (await read("fixtures/result.schema.json")).examples as Json[];
    expect([theirs.config(config), theirs.result(result)]).toEqual([true, true]);
    expect([ours.config(config), ours.bridge(config), ours.hostLocal(config)]).toEqual([true, true, true]);
    expect(ours.result(result)).toBe(true);
  });

  test("are refused with a fault anywhere", async () => {
    const [config] = (await read("fixtures/network-config.schema.json")).examples as Json[];
    const [result] = (await read("fixtures/result.schema.json")).examples as Json[];
    const faults: [schema: (document: unknown) => boolean, document: Json | undefined, part: Json][] = [
      [ours.bridge, config, { cniVersion: undefined }],
      [ours.bridge, config, { cniVersion: "1.0" }],
      [ours.bridge, config, { name: "a b" }],
      [ours.bridge, config, { type: "" }],
      [ours.bridge, config, { isGateway: "true" }],
      [ours.bridge, config, { vlan: 4095 }],
      [ours.bridge, config, { ipMasqBackend: "pf" }],
      [ours.hostLocal, config, { ipam: { type: "host-local", subnet: 5 } }],
      [ours.hostLocal, config, { ipam: undefined }],
      [ours.result, result, { cniVersion: undefined }],
      [ours.result, result, { ips: [{}] }],
      [ours.result, result, { ips: [{ address: "10.0.0.1/8", interface: -1 }] }],
      [ours.result, result, { interfaces: [{ name: "eth0", mac: "00:11" }] }],
    ];
    for (const [schema, document, part] of faults) {
      expect([part, schema(JSON.parse(JSON.stringify({ ...document, ...part })))]).toEqual([part, false]);
    }
  });
});

describe("the specification's examples", () => {
  const ipam = { type: "host-local", subnet: "10.1.0.0/16", gateway: "10.1.0.1", routes: [{ dst: "0.0.0.0/0" }] };
  const list = {
    cniVersion: "1.1.0",
    cniVersions: ["0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    name: "dbnet",
    plugins: [
      { type: "bridge", bridge: "cni0", keyA: ["some more", "plugin specific", "configuration"], ipam },
      { type: "tuning", capabilities: { mac: true }, sysctl: { "net.core.somaxconn": "500" } },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };

  test("the list is accepted by zod; what its JSON Schema accepts, test/docs/editors.test.ts asks", () => {
    expect(networkConfigList.safeParse(list).success).toBe(true);
  });

  test("a configuration derived for a plugin is accepted, its prevResult without a version", () => {
    const derived = {
      cniVersion: "1.0.0",
      name: "dbnet",
      type: "tuning",
      sysctl: { "net.core.somaxconn": "500" },
      runtimeConfig: { mac: "00:11:22:33:44:66" },
      prevResult: {
        ips: [{ address: "10.1.0.5/16", gateway: "10.1.0.1", interface: 2 }],
        routes: [{ dst: "0.0.0.0/0" }],
        interfaces: [{ name: "cni0", mac: "00:11:22:33:44:55" }, { name: "eth0", sandbox: "/var/run/netns/blue" }],
        dns: { nameservers: ["10.1.0.1"] },
      },
    };
    expect(ours.config(derived)).toBe(true);
    expect(theirs.config(derived)).toBe(false);
  });
});

describe("where the specification says otherwise than the CNI project's schemas", () => {
  const base = { cniVersion: "1.0.0", name: "net", type: "bridge" };
  const differing: [what: string, part: Json, accepted: boolean][] = [
    ["a path as plugin type", { type: "../bridge" }, false],
    ["a path as IPAM type", { ipam: { type: "a/b" } }, false],
    ["no name as IPAM type", { ipam: { type: "" } }, false],
    ["a prevResult without a version", { prevResult: {} }, true],
    ["a metric that is no integer", { ipam: { type: "x", routes: [{ dst: "::/0", priority: "1" }] } }, false],
    ["addresses by capability that are no texts", { runtimeConfig: { ips: [5] } }, false],
  ];
  for (const [what, part, accepted] of differing) {
    test(`${what}: ${accepted ? "accepted" : "refused"}`, () => {
      const document = { ...base, ...part };
      expect([ours.config(document), theirs.config(document)]).toEqual([accepted, !accepted]);
    });
  }
});

test("a key that nothing is said of is refused by name, wherever it is; since when there is one, its words say", () => {
  const named = z.string().describe("Said.").meta({ since: "9.9.9" });
  const schema = z.object({ named, list: z.array(z.object({ named, inner: z.string() })).describe("A list.") });
  const document = jsonSchema(schema);
  expect(() => publishedText("some", document)).toThrow(
    "schemas/some.json: .describe() in the *.schema.ts file has to",
  );
  expect(() => publishedText("some", document)).toThrow("say what list.inner means");
  expect(document.properties!.named).toEqual({ type: "string", description: "Said. Since 9.9.9." });
});
