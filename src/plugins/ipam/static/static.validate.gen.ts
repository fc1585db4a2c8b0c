// Generated from static.schema.ts by compile/validators.ts; change those.
import { address, decoding, list, objectOf, prefix, string } from "../../../cni/decode.ts";
import { dns, ipamPluginKeys, route } from "../../../cni/config.validate.gen.ts";
import type { StaticConf } from "./static.schema.ts";

const staticConfIpamAddressesItem = objectOf({
  address: (value, at) => prefix(value, at, (got) => `the 'address' field is expected to be in CIDR notation, got: '${got}'`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
}, {}, "address");

const staticConfIpam = objectOf({
  type: string,
  addresses: (value, at) => list(value, at, staticConfIpamAddressesItem),
  routes: (value, at) => list(value, at, route),
  dns: dns,
}, { type: "" });

const staticConfRuntimeConfig = objectOf({
  ips: (value, at) => list(value, at, (value, at) => prefix(value, at, (got) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${got}'`)),
}, {});

const staticConfArgsCni = objectOf({
  ips: (value, at) => list(value, at, (value, at) => prefix(value, at, (got) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${got}'`)),
}, {});

const staticConfArgs = objectOf({
  cni: staticConfArgsCni,
}, {});

const staticConf = objectOf({
  ...ipamPluginKeys,
  ipam: staticConfIpam,
  runtimeConfig: staticConfRuntimeConfig,
  args: staticConfArgs,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateStaticConf(document: unknown): StaticConf {
  return decoding("failed to load netconf", () => staticConf(document ?? {}, ""));
}
