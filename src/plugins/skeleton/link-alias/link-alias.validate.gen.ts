// Generated from link-alias.schema.ts by compile/validators.ts; change those.
import { decoding, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { LinkAliasConf } from "./link-alias.schema.ts";

const linkAliasConf = objectOf({
  ...commonKeys,
  alias: string,
}, { cniVersion: "0.1.0", type: "", alias: "" }, "name");

export function validateLinkAliasConf(document: unknown): LinkAliasConf {
  return decoding("failed to load netconf", () => linkAliasConf(document ?? {}, ""));
}
