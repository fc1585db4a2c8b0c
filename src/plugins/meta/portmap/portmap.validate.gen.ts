// Generated from portmap.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, list, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
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

type PortmapConfShape = Omit<CommonKeysShape, "runtimeConfig"> & {
  "runtimeConfig"?: PortmapConfRuntimeConfigShape;
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
    const folded = foldKey(key);
    switch (folded) {
      case "runtimeconfig":
        out.runtimeConfig = portmapConfRuntimeConfig(value, inside(at, "runtimeConfig"));
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
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as PortmapConfShape;
}
