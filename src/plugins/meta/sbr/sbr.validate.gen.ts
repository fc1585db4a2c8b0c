// Generated from sbr.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, list, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { SbrConf } from "./sbr.schema.ts";

export function validateSbrConf(document: unknown): SbrConf {
  return decoding("failed to load netconf", () => sbrConf(document ?? {}, ""));
}

type SbrConfShape = CommonKeysShape & {
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
    const folded = foldKey(key);
    switch (folded) {
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      case "gateways":
        out.gateways = list(value, inside(at, "gateways"), string);
        break;
      case "addsourcehints":
        out.addSourceHints = boolean(value, inside(at, "addSourceHints"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as SbrConfShape;
}
