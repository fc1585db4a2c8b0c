/**
 * Go's `static` and our validator for it read generated configurations, valid ones and nearly valid ones: both accept
 * or both refuse, and addresses and routes come out alike. `static` touches nothing, so no machine is needed.
 *
 * Left out are the differences in docs/quirks/general.md, "Reading configurations and results", and keys that Debian's
 * release of the Go plugins does not know yet.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CniError } from "../../src/cni/error.ts";
import { foldKey } from "../../src/cni/json.ts";
import plugin from "../../src/plugins/ipam/static/static.ts";
import { type StaticConf, staticConf } from "../../src/plugins/ipam/static/static.schema.ts";
import { validateStaticConf } from "../../src/plugins/ipam/static/static.validate.gen.ts";
import { documents } from "../compile/schema-documents.ts";
import { GO_PLUGINS } from "../support/plugins.ts";

type Json = Record<string, unknown>;

const leftOut = ["type", "prevresult", "cni.dev/valid-attachments", "mtu", "advmss", "priority", "table", "scope"];

/** The document without the parts that the two are known to read differently. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== null).map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const kept: Json = {};
  const seen = new Set<string>();
  for (const [key, part] of Object.entries(value)) {
    const folded = foldKey(key);
    if (part === null || leftOut.includes(folded) || seen.has(folded)) continue;
    seen.add(folded);
    kept[key] = comparable(part);
  }
  return kept;
}

/** Go's result, or undefined when it refuses. */
function goResult(configuration: string): Json | undefined {
  const { exitCode, stdout } = Bun.spawnSync([join(GO_PLUGINS, "static")], {
    stdin: new TextEncoder().encode(configuration),
    env: {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "c",
      CNI_NETNS: "/nowhere",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/nowhere",
    },
  });
  return exitCode === 0 ? JSON.parse(stdout.toString()) : undefined;
}

test.skipIf(!existsSync(join(GO_PLUGINS, "static")))("ours and Go's static take the same configurations", () => {
  const configurations = documents(staticConf).filter((document) => typeof document === "object").map((document) => {
    const own = Object.entries(comparable(document) ?? {}).filter(([key]) =>
      !/^(name|cniversion)$/.test(foldKey(key))
    );
    const given = own.some(([key]) => foldKey(key) === "ipam") ? {} : { ipam: {} };
    return { ...given, ...Object.fromEntries(own), name: "net", cniVersion: "1.0.0" };
  });
  let accepted = 0, refused = 0;
  fc.assert(
    fc.property(configurations, (configuration) => {
      let ours: StaticConf | undefined;
      try {
        ours = validateStaticConf(configuration);
      } catch (error) {
        const { message } = error as CniError;
        const mayBeReplaced = Object.keys(configuration).some((key) => /^(runtimeconfig|args)$/.test(foldKey(key)));
        fc.pre(!message.endsWith("is missing") && !(mayBeReplaced && message.includes("the 'address' field")));
      }
      const result = goResult(JSON.stringify(configuration));
      expect(ours !== undefined).toBe(result !== undefined);
      if (ours === undefined || result === undefined) return void refused++;
      accepted++;
      const { ipam, runtimeConfig, args } = ours;
      const replaced = runtimeConfig?.ips?.length || args?.cni?.ips?.length;
      if (!replaced) expect(result.ips ?? []).toEqual(ipam!.addresses ?? []);
      expect(result.routes ?? []).toEqual(ipam!.routes ?? []);
    }),
    { numRuns: 400 },
  );
  expect(Math.min(accepted, refused)).toBeGreaterThan(20);
}, 300_000);

const withGoFields: Json[] = [
  { address: "10.1.0.2/24", gateway: "10.1.0.1", Address: { IP: "10.1.0.9", Mask: "////AA==" }, Version: "4" },
  { Address: { IP: "10.1.0.9", Mask: "////AA==" }, address: "10.1.0.2/24" },
  { Address: { IP: "", Mask: null }, address: "10.1.0.2/24", Version: "" },
  { address: "10.1.0.2/24", Address: {} },
  { address: "10.1.0.2/24", Address: null },
  { Address: { ip: "10.1.0.2", MASK: "//8AAA==" } },
  { Address: { IP: "10.1.0.2", Mask: "AAAAAAAAAAAAAAAA////AA==" } },
  { Address: { IP: "fd01::2", Mask: "//////////8AAAAAAAAAAA==" }, Version: "6" },
  { Address: { IP: "", Mask: "////AA==" } },
  { address: "10.1.0.2/24", Address: { IP: 5 } },
  { address: "10.1.0.2/24", Address: { IP: "nonsense", Mask: "////AA==" } },
  { address: "10.1.0.2/24", Address: { IP: "10.1.0.2", Mask: "zz" } },
  { address: "10.1.0.2/24", Address: [] },
  { ADDRESS: { IP: "10.1.0.2", Mask: "////AA==" } },
  { ADDRESS: "10.1.0.2/24", version: "4" },
];

test.skipIf(!existsSync(join(GO_PLUGINS, "static")))(
  "the fields that Go's static has of its own are read alike",
  () => {
    for (const address of withGoFields) {
      const configuration = { cniVersion: "1.0.0", name: "net", IPAM: { type: "static", Addresses: [address] } };
      let ours: StaticConf | undefined;
      try {
        ours = plugin.validate(configuration);
      } catch (error) {
        expect(error).toBeInstanceOf(CniError);
      }
      expect([address, ours?.ipam?.addresses]).toEqual([
        address,
        goResult(JSON.stringify(configuration))?.ips as undefined,
      ]);
    }
  },
);
