// Generated from bandwidth.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, integerBetween, list, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";

export function validateBandwidthConf(document: unknown): BandwidthConf {
  return decoding("failed to load netconf", () => bandwidthConf(document ?? {}, ""));
}

type BandwidthConfRuntimeConfigBandwidthShape = {
  "ingressRate"?: number;
  "ingressBurst"?: number;
  "egressRate"?: number;
  "egressBurst"?: number;
  "unshapedSubnets"?: Array<string>;
  "shapedSubnets"?: Array<string>;
};

function bandwidthConfRuntimeConfigBandwidth(document: unknown, at: string): BandwidthConfRuntimeConfigBandwidthShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfRuntimeConfigBandwidthShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ingressrate":
        out.ingressRate = integerBetween(value, inside(at, "ingressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "ingressburst":
        out.ingressBurst = integerBetween(value, inside(at, "ingressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressrate":
        out.egressRate = integerBetween(value, inside(at, "egressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressburst":
        out.egressBurst = integerBetween(value, inside(at, "egressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "unshapedsubnets":
        out.unshapedSubnets = list(value, inside(at, "unshapedSubnets"), string);
        break;
      case "shapedsubnets":
        out.shapedSubnets = list(value, inside(at, "shapedSubnets"), string);
        break;
    }
  }
  return out as BandwidthConfRuntimeConfigBandwidthShape;
}

type BandwidthConfRuntimeConfigShape = {
  "bandwidth"?: BandwidthConfRuntimeConfigBandwidthShape;
};

function bandwidthConfRuntimeConfig(document: unknown, at: string): BandwidthConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "bandwidth":
        out.bandwidth = bandwidthConfRuntimeConfigBandwidth(value, inside(at, "bandwidth"));
        break;
    }
  }
  return out as BandwidthConfRuntimeConfigShape;
}

type BandwidthConfShape = Omit<CommonKeysShape, "runtimeConfig"> & {
  "runtimeConfig"?: BandwidthConfRuntimeConfigShape;
  "ingressRate"?: number;
  "ingressBurst"?: number;
  "egressRate"?: number;
  "egressBurst"?: number;
  "unshapedSubnets"?: Array<string>;
  "shapedSubnets"?: Array<string>;
};

function bandwidthConf(document: unknown, at: string): BandwidthConfShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfShape> = { "cniVersion": "0.1.0", "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "runtimeconfig":
        out.runtimeConfig = bandwidthConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "ingressrate":
        out.ingressRate = integerBetween(value, inside(at, "ingressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "ingressburst":
        out.ingressBurst = integerBetween(value, inside(at, "ingressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressrate":
        out.egressRate = integerBetween(value, inside(at, "egressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressburst":
        out.egressBurst = integerBetween(value, inside(at, "egressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "unshapedsubnets":
        out.unshapedSubnets = list(value, inside(at, "unshapedSubnets"), string);
        break;
      case "shapedsubnets":
        out.shapedSubnets = list(value, inside(at, "shapedSubnets"), string);
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as BandwidthConfShape;
}
