// Generated from ipvlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integerBetween, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { IpvlanConf } from "./ipvlan.schema.ts";

export function validateIpvlanConf(document: unknown): IpvlanConf {
  return decoding("failed to load netconf", () => ipvlanConf(document ?? {}, ""));
}

type IpvlanConfShape = CommonKeysShape & {
  "master": string;
  "mode": string;
  "mtu": number;
  "linkInContainer": boolean;
};

function ipvlanConf(document: unknown, at: string): IpvlanConfShape {
  const source = object(document, at);
  const out: Partial<IpvlanConfShape> = { "cniVersion": "0.1.0", "type": "", "master": "", "mode": "", "mtu": 0, "linkInContainer": false };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "master":
        out.master = string(value, inside(at, "master"));
        break;
      case "mode":
        out.mode = string(value, inside(at, "mode"));
        break;
      case "mtu":
        out.mtu = integerBetween(value, inside(at, "mtu"), -9007199254740991, 4294967295, (got) => `${got} is not an MTU`);
        break;
      case "linkincontainer":
        out.linkInContainer = boolean(value, inside(at, "linkInContainer"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as IpvlanConfShape;
}
