// Generated from portmap.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { PortmapConf } from "./portmap.schema.ts";

export function validatePortmapConf(document: unknown): PortmapConf {
  return decoding("failed to load netconf", () => portmapConf(document ?? {}, ""));
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

type PortmapConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: PortmapConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
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
        out.ipam = ipamType(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
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
