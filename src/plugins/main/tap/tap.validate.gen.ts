// Generated from tap.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integerBetween, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
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

type TapConfShape = Omit<CommonKeysShape, "runtimeConfig"> & {
  "runtimeConfig"?: TapConfRuntimeConfigShape;
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
    const folded = foldKey(key);
    switch (folded) {
      case "runtimeconfig":
        out.runtimeConfig = tapConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "multiqueue":
        out.multiQueue = boolean(value, inside(at, "multiQueue"));
        break;
      case "mtu":
        out.mtu = integerBetween(value, inside(at, "mtu"), -9007199254740991, 4294967295, (got) => `${got} is not an MTU`);
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
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as TapConfShape;
}
