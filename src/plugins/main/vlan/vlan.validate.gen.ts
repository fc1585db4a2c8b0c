// Generated from vlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { VlanConf } from "./vlan.schema.ts";

export function validateVlanConf(document: unknown): VlanConf {
  return decoding("failed to load netconf", () => vlanConf(document ?? {}, ""));
}

type VlanConfShape = CommonKeysShape & {
  "master": string;
  "vlanId": number;
  "mtu": number;
  "linkInContainer": boolean;
};

function vlanConf(document: unknown, at: string): VlanConfShape {
  const source = object(document, at);
  const out: Partial<VlanConfShape> = { "cniVersion": "0.1.0", "type": "", "master": "", "vlanId": 0, "mtu": 0, "linkInContainer": false };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "master":
        out.master = string(value, inside(at, "master"));
        break;
      case "vlanid":
        out.vlanId = integer(value, inside(at, "vlanId"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "linkincontainer":
        out.linkInContainer = boolean(value, inside(at, "linkInContainer"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as VlanConfShape;
}
