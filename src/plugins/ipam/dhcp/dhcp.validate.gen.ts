// Generated from dhcp.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, list, objectOf, string } from "../../../cni/decode.ts";
import { ipamPluginKeys } from "../../../cni/config.validate.gen.ts";
import type { DhcpConf } from "./dhcp.schema.ts";

const dhcpConfIpamRequestItem = objectOf({
  option: string,
  skipDefault: boolean,
}, {});

const dhcpConfIpamProvideItem = objectOf({
  option: string,
  value: string,
  hex: string,
  fromArg: string,
}, {});

const dhcpConfIpamRoutesItem = objectOf({
  dst: string,
  gw: string,
  mtu: integer,
  advmss: integer,
  priority: integer,
  table: integer,
  scope: integer,
}, {});

const dhcpConfIpam = objectOf({
  type: string,
  daemonSocketPath: string,
  dataDir: string,
  request: (value, at) => list(value, at, dhcpConfIpamRequestItem),
  provide: (value, at) => list(value, at, dhcpConfIpamProvideItem),
  priority: integer,
  routes: (value, at) => list(value, at, dhcpConfIpamRoutesItem),
  clientId: string,
  hostname: string,
  servers: (value, at) => list(value, at, string),
  denyServers: (value, at) => list(value, at, string),
  acd: string,
  ipv4: boolean,
  ipv6: boolean,
  required: (value, at) => list(value, at, string),
  timeout: integer,
  broadcast: boolean,
  ignore: (value, at) => list(value, at, string),
  onExpiry: string,
}, { type: "", priority: 0, ipv4: true, ipv6: false });

const dhcpConf = objectOf({
  ...ipamPluginKeys,
  bridge: string,
  master: string,
  ipam: dhcpConfIpam,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateDhcpConf(document: unknown): DhcpConf {
  return decoding("failed to load netconf", () => dhcpConf(document ?? {}, ""));
}
