// Generated from sbr.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { SbrConf } from "./sbr.schema.ts";

export function validateSbrConf(document: unknown): SbrConf {
  return decoding("failed to load netconf", () => sbrConf(document ?? {}, ""));
}

type SbrConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
  "table"?: number;
  "gateways"?: Array<string>;
  "addSourceHints": boolean;
};

function sbrConf(document: unknown, at: string): SbrConfShape {
  const source = object(document, at);
  const out: Partial<SbrConfShape> = { "cniVersion": "0.1.0", "type": "", "addSourceHints": false };
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
        out.runtimeConfig = map(value, inside(at, "runtimeConfig"), anything);
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      case "gateways":
        out.gateways = list(value, inside(at, "gateways"), string);
        break;
      case "addsourcehints":
        out.addSourceHints = boolean(value, inside(at, "addSourceHints"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as SbrConfShape;
}
