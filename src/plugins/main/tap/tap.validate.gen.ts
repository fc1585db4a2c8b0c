// Generated from tap.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integerBetween, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { TapConf } from "./tap.schema.ts";

const tapConfRuntimeConfig = objectOf({
  mac: string,
}, {});

const tapConf = objectOf({
  ...commonKeys,
  runtimeConfig: tapConfRuntimeConfig,
  multiQueue: boolean,
  mtu: (value, at) => integerBetween(value, at, -9007199254740991, 4294967295, (got) => `${got} is not an MTU`),
  mac: string,
  owner: (value, at) => integerBetween(value, at, 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`),
  group: (value, at) => integerBetween(value, at, 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`),
  selinuxContext: string,
  bridge: string,
}, { cniVersion: "0.1.0", type: "", multiQueue: false, mtu: 0, selinuxContext: "", bridge: "" }, "name");

export function validateTapConf(document: unknown): TapConf {
  return decoding("failed to load netconf", () => tapConf(document ?? {}, ""));
}
