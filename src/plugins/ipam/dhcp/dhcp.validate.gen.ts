// Generated from dhcp.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, list, missing, object, string } from "../../../cni/decode.ts";
import { type IpamPluginKeysShape, ipamPluginKeys } from "../../../cni/config.validate.gen.ts";
import type { DhcpConf } from "./dhcp.schema.ts";

export function validateDhcpConf(document: unknown): DhcpConf {
  return decoding("failed to load netconf", () => dhcpConf(document ?? {}, ""));
}

type DhcpConfIpamRequestItemShape = {
  "option"?: string;
  "skipDefault"?: boolean;
};

function dhcpConfIpamRequestItem(document: unknown, at: string): DhcpConfIpamRequestItemShape {
  const source = object(document, at);
  const out: Partial<DhcpConfIpamRequestItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "option":
        out.option = string(value, inside(at, "option"));
        break;
      case "skipdefault":
        out.skipDefault = boolean(value, inside(at, "skipDefault"));
        break;
    }
  }
  return out as DhcpConfIpamRequestItemShape;
}

type DhcpConfIpamProvideItemShape = {
  "option"?: string;
  "value"?: string;
  "hex"?: string;
  "fromArg"?: string;
};

function dhcpConfIpamProvideItem(document: unknown, at: string): DhcpConfIpamProvideItemShape {
  const source = object(document, at);
  const out: Partial<DhcpConfIpamProvideItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "option":
        out.option = string(value, inside(at, "option"));
        break;
      case "value":
        out.value = string(value, inside(at, "value"));
        break;
      case "hex":
        out.hex = string(value, inside(at, "hex"));
        break;
      case "fromarg":
        out.fromArg = string(value, inside(at, "fromArg"));
        break;
    }
  }
  return out as DhcpConfIpamProvideItemShape;
}

type DhcpConfIpamShape = {
  "type": string;
  "daemonSocketPath"?: string;
  "dataDir"?: string;
  "request"?: Array<DhcpConfIpamRequestItemShape>;
  "provide"?: Array<DhcpConfIpamProvideItemShape>;
  "priority": number;
  "clientId"?: string;
  "hostname"?: string;
  "servers"?: Array<string>;
  "denyServers"?: Array<string>;
  "acd"?: string;
  "ipv4": boolean;
  "ipv6": boolean;
  "required"?: Array<string>;
  "timeout"?: number;
  "broadcast"?: boolean;
  "ignore"?: Array<string>;
  "onExpiry"?: string;
};

function dhcpConfIpam(document: unknown, at: string): DhcpConfIpamShape {
  const source = object(document, at);
  const out: Partial<DhcpConfIpamShape> = { "type": "", "priority": 0, "ipv4": true, "ipv6": false };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
      case "daemonsocketpath":
        out.daemonSocketPath = string(value, inside(at, "daemonSocketPath"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
      case "request":
        out.request = list(value, inside(at, "request"), dhcpConfIpamRequestItem);
        break;
      case "provide":
        out.provide = list(value, inside(at, "provide"), dhcpConfIpamProvideItem);
        break;
      case "priority":
        out.priority = integer(value, inside(at, "priority"));
        break;
      case "clientid":
        out.clientId = string(value, inside(at, "clientId"));
        break;
      case "hostname":
        out.hostname = string(value, inside(at, "hostname"));
        break;
      case "servers":
        out.servers = list(value, inside(at, "servers"), string);
        break;
      case "denyservers":
        out.denyServers = list(value, inside(at, "denyServers"), string);
        break;
      case "acd":
        out.acd = string(value, inside(at, "acd"));
        break;
      case "ipv4":
        out.ipv4 = boolean(value, inside(at, "ipv4"));
        break;
      case "ipv6":
        out.ipv6 = boolean(value, inside(at, "ipv6"));
        break;
      case "required":
        out.required = list(value, inside(at, "required"), string);
        break;
      case "timeout":
        out.timeout = integer(value, inside(at, "timeout"));
        break;
      case "broadcast":
        out.broadcast = boolean(value, inside(at, "broadcast"));
        break;
      case "ignore":
        out.ignore = list(value, inside(at, "ignore"), string);
        break;
      case "onexpiry":
        out.onExpiry = string(value, inside(at, "onExpiry"));
        break;
    }
  }
  return out as DhcpConfIpamShape;
}

type DhcpConfShape = IpamPluginKeysShape & {
  "bridge"?: string;
  "master"?: string;
  "ipam"?: DhcpConfIpamShape;
};

function dhcpConf(document: unknown, at: string): DhcpConfShape {
  const source = object(document, at);
  const out: Partial<DhcpConfShape> = { "cniVersion": "0.1.0", "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "bridge":
        out.bridge = string(value, inside(at, "bridge"));
        break;
      case "master":
        out.master = string(value, inside(at, "master"));
        break;
      case "ipam":
        out.ipam = dhcpConfIpam(value, inside(at, "ipam"));
        break;
      default:
        ipamPluginKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as DhcpConfShape;
}
