// Generated from tuning.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, integer, map, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { TuningConf } from "./tuning.schema.ts";

export function validateTuningConf(document: unknown): TuningConf {
  return decoding("failed to load netconf", () => tuningConf(document ?? {}, ""));
}

type TuningConfArgsCniShape = {
  "sysctl"?: Record<string, string>;
  "mac"?: string;
  "promisc"?: boolean;
  "mtu"?: number;
  "allmulti"?: boolean;
  "txQLen"?: number;
};

function tuningConfArgsCni(document: unknown, at: string): TuningConfArgsCniShape {
  const source = object(document, at);
  const out: Partial<TuningConfArgsCniShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "sysctl":
        out.sysctl = map(value, inside(at, "sysctl"), string);
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "promisc":
        out.promisc = boolean(value, inside(at, "promisc"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "allmulti":
        out.allmulti = boolean(value, inside(at, "allmulti"));
        break;
      case "txqlen":
        out.txQLen = integer(value, inside(at, "txQLen"));
        break;
    }
  }
  return out as TuningConfArgsCniShape;
}

type TuningConfArgsShape = {
  "cni"?: TuningConfArgsCniShape;
};

function tuningConfArgs(document: unknown, at: string): TuningConfArgsShape {
  const source = object(document, at);
  const out: Partial<TuningConfArgsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cni":
        out.cni = tuningConfArgsCni(value, inside(at, "cni"));
        break;
    }
  }
  return out as TuningConfArgsShape;
}

type TuningConfRuntimeConfigShape = {
  "mac"?: string;
};

function tuningConfRuntimeConfig(document: unknown, at: string): TuningConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<TuningConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as TuningConfRuntimeConfigShape;
}

type TuningConfShape = Omit<CommonKeysShape, "args" | "runtimeConfig"> & {
  "args"?: TuningConfArgsShape;
  "runtimeConfig"?: TuningConfRuntimeConfigShape;
  "sysctl"?: Record<string, string>;
  "mac"?: string;
  "promisc"?: boolean;
  "mtu"?: number;
  "allmulti"?: boolean;
  "txQLen"?: number;
  "dataDir": string;
};

function tuningConf(document: unknown, at: string): TuningConfShape {
  const source = object(document, at);
  const out: Partial<TuningConfShape> = { "cniVersion": "0.1.0", "type": "", "dataDir": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "args":
        out.args = tuningConfArgs(value, inside(at, "args"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = tuningConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "sysctl":
        out.sysctl = map(value, inside(at, "sysctl"), string);
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "promisc":
        out.promisc = boolean(value, inside(at, "promisc"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "allmulti":
        out.allmulti = boolean(value, inside(at, "allmulti"));
        break;
      case "txqlen":
        out.txQLen = integer(value, inside(at, "txQLen"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as TuningConfShape;
}
