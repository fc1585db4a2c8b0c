// Generated from vrf.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, integer, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { VrfConf } from "./vrf.schema.ts";

export function validateVrfConf(document: unknown): VrfConf {
  return decoding("failed to load netconf", () => vrfConf(document ?? {}, ""));
}

type VrfConfShape = CommonKeysShape & {
  "vrfname": string;
  "table": number;
};

function vrfConf(document: unknown, at: string): VrfConfShape {
  const source = object(document, at);
  const out: Partial<VrfConfShape> = { "cniVersion": "0.1.0", "type": "", "vrfname": "", "table": 0 };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "vrfname":
        out.vrfname = string(value, inside(at, "vrfname"));
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as VrfConfShape;
}
