// Generated from loopback.schema.ts by compile/validators.ts; change those.
import { decoding, objectOf } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { LoopbackConf } from "./loopback.schema.ts";

const loopbackConf = objectOf({
  ...commonKeys,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateLoopbackConf(document: unknown): LoopbackConf {
  return decoding("failed to load netconf", () => loopbackConf(document ?? {}, ""));
}
