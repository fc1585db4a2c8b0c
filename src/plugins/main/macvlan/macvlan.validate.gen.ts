// Generated from macvlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, integerBetween, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { MacvlanConf } from "./macvlan.schema.ts";

export function validateMacvlanConf(document: unknown): MacvlanConf {
  return decoding("failed to load netconf", () => macvlanConf(document ?? {}, ""));
}

type MacvlanConfRuntimeConfigShape = {
  "mac"?: string;
};

function macvlanConfRuntimeConfig(document: unknown, at: string): MacvlanConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<MacvlanConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as MacvlanConfRuntimeConfigShape;
}

type MacvlanConfShape = Omit<CommonKeysShape, "runtimeConfig"> & {
  "runtimeConfig"?: MacvlanConfRuntimeConfigShape;
  "master": string;
  "mode": string;
  "mtu": number;
  "mac"?: string;
  "linkInContainer": boolean;
  "bcqueuelen": number;
};

function macvlanConf(document: unknown, at: string): MacvlanConfShape {
  const source = object(document, at);
  const out: Partial<MacvlanConfShape> = { "cniVersion": "0.1.0", "type": "", "master": "", "mode": "", "mtu": 0, "linkInContainer": false, "bcqueuelen": 0 };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "runtimeconfig":
        out.runtimeConfig = macvlanConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "master":
        out.master = string(value, inside(at, "master"));
        break;
      case "mode":
        out.mode = string(value, inside(at, "mode"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "linkincontainer":
        out.linkInContainer = boolean(value, inside(at, "linkInContainer"));
        break;
      case "bcqueuelen":
        out.bcqueuelen = integerBetween(value, inside(at, "bcqueuelen"), 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`);
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as MacvlanConfShape;
}
