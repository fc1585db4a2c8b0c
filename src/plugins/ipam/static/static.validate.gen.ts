// Generated from static.schema.ts by compile/validators.ts; change those.
import { address, decoding, foldKey, inside, list, missing, object, prefix, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamPluginKeysShape, type RouteShape, dns, ipamPluginKeys, route } from "../../../cni/config.validate.gen.ts";
import type { StaticConf } from "./static.schema.ts";

export function validateStaticConf(document: unknown): StaticConf {
  return decoding("failed to load netconf", () => staticConf(document ?? {}, ""));
}

type StaticConfIpamAddressesItemShape = {
  "address": string;
  "gateway"?: string | undefined;
};

function staticConfIpamAddressesItem(document: unknown, at: string): StaticConfIpamAddressesItemShape {
  const source = object(document, at);
  const out: Partial<StaticConfIpamAddressesItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "address":
        out.address = prefix(value, inside(at, "address"), (got) => `the 'address' field is expected to be in CIDR notation, got: '${got}'`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
    }
  }
  if (out.address === undefined) throw missing(inside(at, "address"));
  return out as StaticConfIpamAddressesItemShape;
}

type StaticConfIpamShape = {
  "type": string;
  "addresses"?: Array<StaticConfIpamAddressesItemShape>;
  "routes"?: Array<RouteShape>;
  "dns"?: DnsShape;
};

function staticConfIpam(document: unknown, at: string): StaticConfIpamShape {
  const source = object(document, at);
  const out: Partial<StaticConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
      case "addresses":
        out.addresses = list(value, inside(at, "addresses"), staticConfIpamAddressesItem);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), route);
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
        break;
    }
  }
  return out as StaticConfIpamShape;
}

type StaticConfRuntimeConfigShape = {
  "ips"?: Array<string>;
};

function staticConfRuntimeConfig(document: unknown, at: string): StaticConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<StaticConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ips":
        out.ips = list(value, inside(at, "ips"), (value, at) => prefix(value, at, (got) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${got}'`));
        break;
    }
  }
  return out as StaticConfRuntimeConfigShape;
}

type StaticConfArgsCniShape = {
  "ips"?: Array<string>;
};

function staticConfArgsCni(document: unknown, at: string): StaticConfArgsCniShape {
  const source = object(document, at);
  const out: Partial<StaticConfArgsCniShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ips":
        out.ips = list(value, inside(at, "ips"), (value, at) => prefix(value, at, (got) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${got}'`));
        break;
    }
  }
  return out as StaticConfArgsCniShape;
}

type StaticConfArgsShape = {
  "cni"?: StaticConfArgsCniShape;
};

function staticConfArgs(document: unknown, at: string): StaticConfArgsShape {
  const source = object(document, at);
  const out: Partial<StaticConfArgsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cni":
        out.cni = staticConfArgsCni(value, inside(at, "cni"));
        break;
    }
  }
  return out as StaticConfArgsShape;
}

type StaticConfShape = IpamPluginKeysShape & {
  "ipam"?: StaticConfIpamShape;
  "runtimeConfig"?: StaticConfRuntimeConfigShape;
  "args"?: StaticConfArgsShape;
};

function staticConf(document: unknown, at: string): StaticConfShape {
  const source = object(document, at);
  const out: Partial<StaticConfShape> = { "cniVersion": "0.1.0", "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "ipam":
        out.ipam = staticConfIpam(value, inside(at, "ipam"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = staticConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "args":
        out.args = staticConfArgs(value, inside(at, "args"));
        break;
      default:
        ipamPluginKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as StaticConfShape;
}
