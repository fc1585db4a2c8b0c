// Generated from macvlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, integerBetween, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { MacvlanConf } from "./macvlan.schema.ts";

const macvlanConfRuntimeConfig = objectOf({
  mac: string,
}, {});

const macvlanConf = objectOf({
  ...commonKeys,
  runtimeConfig: macvlanConfRuntimeConfig,
  master: string,
  mode: string,
  mtu: integer,
  mac: string,
  linkInContainer: boolean,
  bcqueuelen: (value, at) => integerBetween(value, at, 0, 4294967295, (got) => `${got} is not between 0 and 4294967295`),
}, { cniVersion: "0.1.0", type: "", master: "", mode: "", mtu: 0, linkInContainer: false, bcqueuelen: 0 }, "name");

export function validateMacvlanConf(document: unknown): MacvlanConf {
  return decoding("failed to load netconf", () => macvlanConf(document ?? {}, ""));
}
