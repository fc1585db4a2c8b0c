// Generated from link-alias.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { LinkAliasConf } from "./link-alias.schema.ts";

export function validateLinkAliasConf(document: unknown): LinkAliasConf {
  return decoding("failed to load netconf", () => linkAliasConf(document ?? {}, ""));
}

type LinkAliasConfShape = CommonKeysShape & {
  "alias": string;
};

function linkAliasConf(document: unknown, at: string): LinkAliasConfShape {
  const source = object(document, at);
  const out: Partial<LinkAliasConfShape> = { "cniVersion": "0.1.0", "type": "", "alias": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "alias":
        out.alias = string(value, inside(at, "alias"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as LinkAliasConfShape;
}
