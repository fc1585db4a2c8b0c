// Generated from host-local.schema.ts by compile/validators.ts; change those.
import { address, addressOrPrefix, boolean, decoding, foldKey, inside, integer, list, missing, object, string, subnet } from "../../../cni/decode.ts";
import { type AddressRangeShape, type IpamPluginKeysShape, type RouteShape, addressRange, ipamPluginKeys, route } from "../../../cni/config.validate.gen.ts";
import type { HostLocalConf } from "./host-local.schema.ts";

export function validateHostLocalConf(document: unknown): HostLocalConf {
  return decoding("failed to load netconf", () => hostLocalConf(document ?? {}, ""));
}

type HostLocalConfIpamShape = {
  "type": string;
  "ranges"?: Array<Array<AddressRangeShape>>;
  "subnet"?: string;
  "rangeStart"?: string | undefined;
  "rangeEnd"?: string | undefined;
  "gateway"?: string | undefined;
  "routes"?: Array<RouteShape>;
  "resolvConf"?: string;
  "dataDir": string;
  "quarantineSeconds": number;
  "keepAcrossReboot": boolean;
};

function hostLocalConfIpam(document: unknown, at: string): HostLocalConfIpamShape {
  const source = object(document, at);
  const out: Partial<HostLocalConfIpamShape> = { "type": "", "dataDir": "/var/lib/cni/networks", "quarantineSeconds": 0, "keepAcrossReboot": false };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
      case "ranges":
        out.ranges = list(value, inside(at, "ranges"), (value, at) => list(value, at, addressRange));
        break;
      case "subnet":
        out.subnet = subnet(value, inside(at, "subnet"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "rangestart":
        out.rangeStart = address(value, inside(at, "rangeStart"), (got) => `invalid IP address: ${got}`);
        break;
      case "rangeend":
        out.rangeEnd = address(value, inside(at, "rangeEnd"), (got) => `invalid IP address: ${got}`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), route);
        break;
      case "resolvconf":
        out.resolvConf = string(value, inside(at, "resolvConf"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
      case "quarantineseconds":
        out.quarantineSeconds = integer(value, inside(at, "quarantineSeconds"));
        break;
      case "keepacrossreboot":
        out.keepAcrossReboot = boolean(value, inside(at, "keepAcrossReboot"));
        break;
    }
  }
  return out as HostLocalConfIpamShape;
}

type HostLocalConfRuntimeConfigShape = {
  "ipRanges"?: Array<Array<AddressRangeShape>>;
  "ips"?: Array<string>;
};

function hostLocalConfRuntimeConfig(document: unknown, at: string): HostLocalConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<HostLocalConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ipranges":
        out.ipRanges = list(value, inside(at, "ipRanges"), (value, at) => list(value, at, addressRange));
        break;
      case "ips":
        out.ips = list(value, inside(at, "ips"), (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`));
        break;
    }
  }
  return out as HostLocalConfRuntimeConfigShape;
}

type HostLocalConfArgsCniShape = {
  "ips"?: Array<string>;
};

function hostLocalConfArgsCni(document: unknown, at: string): HostLocalConfArgsCniShape {
  const source = object(document, at);
  const out: Partial<HostLocalConfArgsCniShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ips":
        out.ips = list(value, inside(at, "ips"), (value, at) => addressOrPrefix(value, at, (got) => `invalid IP address ${got}`));
        break;
    }
  }
  return out as HostLocalConfArgsCniShape;
}

type HostLocalConfArgsShape = {
  "cni"?: HostLocalConfArgsCniShape;
};

function hostLocalConfArgs(document: unknown, at: string): HostLocalConfArgsShape {
  const source = object(document, at);
  const out: Partial<HostLocalConfArgsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cni":
        out.cni = hostLocalConfArgsCni(value, inside(at, "cni"));
        break;
    }
  }
  return out as HostLocalConfArgsShape;
}

type HostLocalConfShape = IpamPluginKeysShape & {
  "ipam"?: HostLocalConfIpamShape;
  "runtimeConfig"?: HostLocalConfRuntimeConfigShape;
  "args"?: HostLocalConfArgsShape;
};

function hostLocalConf(document: unknown, at: string): HostLocalConfShape {
  const source = object(document, at);
  const out: Partial<HostLocalConfShape> = { "cniVersion": "0.1.0", "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "ipam":
        out.ipam = hostLocalConfIpam(value, inside(at, "ipam"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = hostLocalConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "args":
        out.args = hostLocalConfArgs(value, inside(at, "args"));
        break;
      default:
        ipamPluginKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as HostLocalConfShape;
}
