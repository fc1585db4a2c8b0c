// Generated from vrf.schema.ts by compile/validators.ts; change those.
import { decoding, integer, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { VrfConf } from "./vrf.schema.ts";

const vrfConf = objectOf({
  ...commonKeys,
  vrfname: string,
  table: integer,
}, { cniVersion: "0.1.0", type: "", vrfname: "", table: 0 }, "name");

export function validateVrfConf(document: unknown): VrfConf {
  return decoding("failed to load netconf", () => vrfConf(document ?? {}, ""));
}
