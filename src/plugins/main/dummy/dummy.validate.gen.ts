// Generated from dummy.schema.ts by compile/validators.ts; change those.
import { decoding, objectOf } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { DummyConf } from "./dummy.schema.ts";

const dummyConf = objectOf({
  ...commonKeys,
}, { cniVersion: "0.1.0", type: "" }, "name");

export function validateDummyConf(document: unknown): DummyConf {
  return decoding("failed to load netconf", () => dummyConf(document ?? {}, ""));
}
