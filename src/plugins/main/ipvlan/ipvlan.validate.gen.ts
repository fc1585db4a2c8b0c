// Generated from ipvlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integerBetween, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { IpvlanConf } from "./ipvlan.schema.ts";

const ipvlanConf = objectOf({
  ...commonKeys,
  master: string,
  mode: string,
  mtu: (value, at) => integerBetween(value, at, -9007199254740991, 4294967295, (got) => `${got} is not an MTU`),
  linkInContainer: boolean,
}, { cniVersion: "0.1.0", type: "", master: "", mode: "", mtu: 0, linkInContainer: false }, "name");

export function validateIpvlanConf(document: unknown): IpvlanConf {
  return decoding("failed to load netconf", () => ipvlanConf(document ?? {}, ""));
}
