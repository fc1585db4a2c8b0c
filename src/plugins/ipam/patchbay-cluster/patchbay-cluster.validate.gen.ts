// Generated from patchbay-cluster.schema.ts by compile/validators.ts; change those.
import { addressOrPrefix, decoding, list, objectOf, string } from "../../../cni/decode.ts";
import { ipamPluginKeys, route } from "../../../cni/config.validate.gen.ts";
import type { PatchbayClusterConf } from "./patchbay-cluster.schema.ts";

const patchbayClusterConfIpam = objectOf({
  type: string,
  pool: string,
  pools: (value, at) => list(value, at, string),
  routes: (value, at) => list(value, at, route),
  resolvConf: string,
  dataDir: string,
}, { type: "", dataDir: "/var/lib/patchbay/pools" });

const patchbayClusterConfRuntimeConfig = objectOf({
  ips: (value, at) => list(value, at, (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`)),
}, {});

const patchbayClusterConfArgsCni = objectOf({
  ips: (value, at) => list(value, at, (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`)),
}, {});

const patchbayClusterConfArgs = objectOf({
  cni: patchbayClusterConfArgsCni,
}, {});

const patchbayClusterConf = objectOf({
  ...ipamPluginKeys,
  ipam: patchbayClusterConfIpam,
  runtimeConfig: patchbayClusterConfRuntimeConfig,
  args: patchbayClusterConfArgs,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validatePatchbayClusterConf(document: unknown): PatchbayClusterConf {
  return decoding("failed to load netconf", () => patchbayClusterConf(document ?? {}, ""));
}
