// Generated from sbr.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, list, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { SbrConf } from "./sbr.schema.ts";

const sbrConf = objectOf({
  ...commonKeys,
  table: integer,
  gateways: (value, at) => list(value, at, string),
  addSourceHints: boolean,
}, { cniVersion: "0.1.0", type: "", addSourceHints: false }, "name");

export function validateSbrConf(document: unknown): SbrConf {
  return decoding("failed to load netconf", () => sbrConf(document ?? {}, ""));
}
