// Generated from tap.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, integerBetween, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { TapConf } from "./tap.schema.ts";

export function validateTapConf(document: unknown): TapConf {
  return decoding("failed to load netconf", () => tapConf(document ?? {}, ""));
}

type TapConfRuntimeConfigShape = {
  "mac"?: string;
};

function tapConfRuntimeConfig(document: unknown, at: string): TapConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<TapConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as TapConfRuntimeConfigShape;
}

type TapConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: TapConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
  "multiQueue": boolean;
  "mtu": number;
  "mac"?: string;
  "owner"?: number;
  "group"?: number;
  "selinuxContext": string;
  "bridge": string;
};

function tapConf(document: unknown, at: string): TapConfShape {
  const source = object(document, at);
  const out: Partial<TapConfShape> = { "cniVersion": "0.1.0", "type": "", "multiQueue": false, "mtu": 0, "selinuxContext": "", "bridge": "" };
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
        out.runtimeConfig = tapConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
        break;
      case "multiqueue":
        out.multiQueue = boolean(value, inside(at, "multiQueue"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "owner":
        out.owner = integerBetween(value, inside(at, "owner"), 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`);
        break;
      case "group":
        out.group = integerBetween(value, inside(at, "group"), 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`);
        break;
      case "selinuxcontext":
        out.selinuxContext = string(value, inside(at, "selinuxContext"));
        break;
      case "bridge":
        out.bridge = string(value, inside(at, "bridge"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as TapConfShape;
}
