// Generated from ptp.schema.ts by compile/validators.ts; change those.
import { boolean, choice, decoding, foldKey, inside, integerBetween, missing, object } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { PtpConf } from "./ptp.schema.ts";

export function validatePtpConf(document: unknown): PtpConf {
  return decoding("failed to load netconf", () => ptpConf(document ?? {}, ""));
}

type PtpConfShape = CommonKeysShape & {
  "ipMasq": boolean;
  "ipMasqBackend"?: "iptables" | "nftables" | "";
  "mtu": number;
};

function ptpConf(document: unknown, at: string): PtpConfShape {
  const source = object(document, at);
  const out: Partial<PtpConfShape> = { "cniVersion": "0.1.0", "type": "", "ipMasq": false, "mtu": 0 };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "ipmasq":
        out.ipMasq = boolean(value, inside(at, "ipMasq"));
        break;
      case "ipmasqbackend":
        out.ipMasqBackend = choice(value, inside(at, "ipMasqBackend"), ["iptables","nftables",""] as const, (got) => `unknown ipmasq backend "${got}"`);
        break;
      case "mtu":
        out.mtu = integerBetween(value, inside(at, "mtu"), -9007199254740991, 4294967295, (got) => `${got} is not an MTU`);
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as PtpConfShape;
}
