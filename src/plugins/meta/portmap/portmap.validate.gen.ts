// Generated from portmap.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { PortmapConf } from "./portmap.schema.ts";

export function validatePortmapConf(document: unknown): PortmapConf {
  return decoding("failed to load netconf", () => portmapConf(document ?? {}, ""));
}

type PortmapConfIpamShape = {
  "type": string;
};

function portmapConfIpam(document: unknown, at: string): PortmapConfIpamShape {
  const source = object(document, at);
  const out: Partial<PortmapConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as PortmapConfIpamShape;
}

type PortmapConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function portmapConfDns(document: unknown, at: string): PortmapConfDnsShape {
  const source = object(document, at);
  const out: Partial<PortmapConfDnsShape> = {};
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
  return out as PortmapConfDnsShape;
}

type PortmapConfRuntimeConfigPortMappingsItemShape = {
  "hostPort": number;
  "containerPort": number;
  "protocol": string;
  "hostIP": string;
};

function portmapConfRuntimeConfigPortMappingsItem(document: unknown, at: string): PortmapConfRuntimeConfigPortMappingsItemShape {
  const source = object(document, at);
  const out: Partial<PortmapConfRuntimeConfigPortMappingsItemShape> = { "hostPort": 0, "containerPort": 0, "protocol": "tcp", "hostIP": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "hostport":
        out.hostPort = integer(value, inside(at, "hostPort"));
        break;
      case "containerport":
        out.containerPort = integer(value, inside(at, "containerPort"));
        break;
      case "protocol":
        out.protocol = string(value, inside(at, "protocol"));
        break;
      case "hostip":
        out.hostIP = string(value, inside(at, "hostIP"));
        break;
    }
  }
  return out as PortmapConfRuntimeConfigPortMappingsItemShape;
}

type PortmapConfRuntimeConfigShape = {
  "portMappings"?: Array<PortmapConfRuntimeConfigPortMappingsItemShape>;
};

function portmapConfRuntimeConfig(document: unknown, at: string): PortmapConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<PortmapConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "portmappings":
        out.portMappings = list(value, inside(at, "portMappings"), portmapConfRuntimeConfigPortMappingsItem);
        break;
    }
  }
  return out as PortmapConfRuntimeConfigShape;
}

type PortmapConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function portmapConfCniDevValidAttachmentsItem(document: unknown, at: string): PortmapConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<PortmapConfCniDevValidAttachmentsItemShape> = {};
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
  return out as PortmapConfCniDevValidAttachmentsItemShape;
}

type PortmapConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: PortmapConfIpamShape;
  "dns"?: PortmapConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: PortmapConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<PortmapConfCniDevValidAttachmentsItemShape>;
  "backend": string;
  "snat"?: boolean;
  "masqAll": boolean;
  "markMasqBit"?: number;
  "externalSetMarkChain"?: string;
  "conditionsV4"?: Array<string>;
  "conditionsV6"?: Array<string>;
};

function portmapConf(document: unknown, at: string): PortmapConfShape {
  const source = object(document, at);
  const out: Partial<PortmapConfShape> = { "cniVersion": "0.1.0", "type": "", "backend": "", "masqAll": false };
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
      case "capabilities":
        out.capabilities = map(value, inside(at, "capabilities"), boolean);
        break;
      case "ipam":
        out.ipam = portmapConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = portmapConfDns(value, inside(at, "dns"));
        break;
      case "args":
        out.args = map(value, inside(at, "args"), anything);
        break;
      case "runtimeconfig":
        out.runtimeConfig = portmapConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), portmapConfCniDevValidAttachmentsItem);
        break;
      case "backend":
        out.backend = string(value, inside(at, "backend"));
        break;
      case "snat":
        out.snat = boolean(value, inside(at, "snat"));
        break;
      case "masqall":
        out.masqAll = boolean(value, inside(at, "masqAll"));
        break;
      case "markmasqbit":
        out.markMasqBit = integer(value, inside(at, "markMasqBit"));
        break;
      case "externalsetmarkchain":
        out.externalSetMarkChain = string(value, inside(at, "externalSetMarkChain"));
        break;
      case "conditionsv4":
        out.conditionsV4 = list(value, inside(at, "conditionsV4"), string);
        break;
      case "conditionsv6":
        out.conditionsV6 = list(value, inside(at, "conditionsV6"), string);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as PortmapConfShape;
}
