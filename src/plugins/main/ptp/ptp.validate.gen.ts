// Generated from ptp.schema.ts by compile/validators.ts; change those.
import { boolean, choice, decoding, integerBetween, objectOf } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { PtpConf } from "./ptp.schema.ts";

const ptpConf = objectOf({
  ...commonKeys,
  ipMasq: boolean,
  ipMasqBackend: (value, at) => choice(value, at, ["iptables","nftables",""] as const, (got) => `unknown ipmasq backend "${got}"`),
  mtu: (value, at) => integerBetween(value, at, -9007199254740991, 4294967295, (got) => `${got} is not an MTU`),
}, { cniVersion: "0.1.0", type: "", ipMasq: false, mtu: 0 }, "name");

export function validatePtpConf(document: unknown): PtpConf {
  return decoding("failed to load netconf", () => ptpConf(document ?? {}, ""));
}
