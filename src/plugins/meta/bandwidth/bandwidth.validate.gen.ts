// Generated from bandwidth.schema.ts by compile/validators.ts; change those.
import { decoding, integerBetween, list, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";

const bandwidthConfRuntimeConfigBandwidth = objectOf({
  ingressRate: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  ingressBurst: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  egressRate: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  egressBurst: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  unshapedSubnets: (value, at) => list(value, at, string),
  shapedSubnets: (value, at) => list(value, at, string),
}, {});

const bandwidthConfRuntimeConfig = objectOf({
  bandwidth: bandwidthConfRuntimeConfigBandwidth,
}, {});

const bandwidthConf = objectOf({
  ...commonKeys,
  runtimeConfig: bandwidthConfRuntimeConfig,
  ingressRate: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  ingressBurst: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  egressRate: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  egressBurst: (value, at) => integerBetween(value, at, 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`),
  unshapedSubnets: (value, at) => list(value, at, string),
  shapedSubnets: (value, at) => list(value, at, string),
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateBandwidthConf(document: unknown): BandwidthConf {
  return decoding("failed to load netconf", () => bandwidthConf(document ?? {}, ""));
}
