// Generated from host-local.schema.ts by compile/validators.ts; change those.
import { address, addressOrPrefix, boolean, decoding, integer, list, objectOf, string, subnet } from "../../../cni/decode.ts";
import { addressRange, ipamPluginKeys, route } from "../../../cni/config.validate.gen.ts";
import type { HostLocalConf } from "./host-local.schema.ts";

const hostLocalConfIpam = objectOf({
  type: string,
  ranges: (value, at) => list(value, at, (value, at) => list(value, at, addressRange)),
  subnet: (value, at) => subnet(value, at, (got) => `invalid CIDR address: ${got}`),
  rangeStart: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  rangeEnd: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  routes: (value, at) => list(value, at, route),
  resolvConf: string,
  dataDir: string,
  quarantineSeconds: integer,
  keepAcrossReboot: boolean,
}, { type: "", dataDir: "/var/lib/cni/networks", quarantineSeconds: 0, keepAcrossReboot: false });

const hostLocalConfRuntimeConfig = objectOf({
  ipRanges: (value, at) => list(value, at, (value, at) => list(value, at, addressRange)),
  ips: (value, at) => list(value, at, (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`)),
}, {});

const hostLocalConfArgsCni = objectOf({
  ips: (value, at) => list(value, at, (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`)),
}, {});

const hostLocalConfArgs = objectOf({
  cni: hostLocalConfArgsCni,
}, {});

const hostLocalConf = objectOf({
  ...ipamPluginKeys,
  ipam: hostLocalConfIpam,
  runtimeConfig: hostLocalConfRuntimeConfig,
  args: hostLocalConfArgs,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateHostLocalConf(document: unknown): HostLocalConf {
  return decoding("failed to load netconf", () => hostLocalConf(document ?? {}, ""));
}
