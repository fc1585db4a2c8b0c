// Generated from static.schema.ts by compile/validators.ts; change those.
import { address, anything, decoding, foldKey, inside, integer, list, map, missing, object, prefix, string } from "../../../cni/decode.ts";
import type { StaticConf } from "./static.schema.ts";

export function validateStaticConf(document: unknown): StaticConf {
  return decoding("failed to load netconf", () => staticConf(document ?? {}, ""));
}

type StaticConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function staticConfCniDevValidAttachmentsItem(document: unknown, at: string): StaticConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<StaticConfCniDevValidAttachmentsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "containerid":
        out.containerID = string(value, inside(at, "containerID"));
        break;
      case "ifname":
        out.ifname = string(value, inside(at, "ifname"));
        break;
    }
  }
  if (out.containerID === undefined) throw missing(inside(at, "containerID"));
  if (out.ifname === undefined) throw missing(inside(at, "ifname"));
  return out as StaticConfCniDevValidAttachmentsItemShape;
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

type StaticConfIpamRoutesItemShape = {
  "dst": string;
  "gw"?: string | undefined;
  "mtu"?: number;
  "advmss"?: number;
  "priority"?: number;
  "table"?: number;
  "scope"?: number;
};

function staticConfIpamRoutesItem(document: unknown, at: string): StaticConfIpamRoutesItemShape {
  const source = object(document, at);
  const out: Partial<StaticConfIpamRoutesItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "dst":
        out.dst = prefix(value, inside(at, "dst"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "gw":
        out.gw = address(value, inside(at, "gw"), (got) => `invalid IP address: ${got}`);
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "advmss":
        out.advmss = integer(value, inside(at, "advmss"));
        break;
      case "priority":
        out.priority = integer(value, inside(at, "priority"));
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      case "scope":
        out.scope = integer(value, inside(at, "scope"));
        break;
    }
  }
  if (out.dst === undefined) throw missing(inside(at, "dst"));
  return out as StaticConfIpamRoutesItemShape;
}

type StaticConfIpamDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function staticConfIpamDns(document: unknown, at: string): StaticConfIpamDnsShape {
  const source = object(document, at);
  const out: Partial<StaticConfIpamDnsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "nameservers":
        out.nameservers = list(value, inside(at, "nameservers"), string);
        break;
      case "domain":
        out.domain = string(value, inside(at, "domain"));
        break;
      case "search":
        out.search = list(value, inside(at, "search"), string);
        break;
      case "options":
        out.options = list(value, inside(at, "options"), string);
        break;
    }
  }
  return out as StaticConfIpamDnsShape;
}

type StaticConfIpamShape = {
  "type": string;
  "addresses"?: Array<StaticConfIpamAddressesItemShape>;
  "routes"?: Array<StaticConfIpamRoutesItemShape>;
  "dns"?: StaticConfIpamDnsShape;
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
        out.routes = list(value, inside(at, "routes"), staticConfIpamRoutesItem);
        break;
      case "dns":
        out.dns = staticConfIpamDns(value, inside(at, "dns"));
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

type StaticConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<StaticConfCniDevValidAttachmentsItemShape>;
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
    switch (foldKey(key)) {
      case "cniversion":
        out.cniVersion = string(value, inside(at, "cniVersion"));
        break;
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), staticConfCniDevValidAttachmentsItem);
        break;
      case "ipam":
        out.ipam = staticConfIpam(value, inside(at, "ipam"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = staticConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "args":
        out.args = staticConfArgs(value, inside(at, "args"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as StaticConfShape;
}
