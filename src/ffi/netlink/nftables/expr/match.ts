/**
 * A match of xtables inside a rule, as iptables-nft writes it (linux/netfilter/nf_tables_compat.h).
 *
 *     -m comment --comment …    [ match name comment rev 0 ]
 */
import { attrTable, binary, text, u32be } from "../../attrs.ts";
import { NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV } from "../../uapi/nf-tables.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const matchAttrs = attrTable("NFTA_MATCH", {
  name: text(NFTA_MATCH_NAME),
  revision: u32be(NFTA_MATCH_REV),
  info: binary(NFTA_MATCH_INFO),
});

const match = expression("match", matchAttrs);

/** struct xt_comment_info: the text with its NUL in 256 bytes. iptables refuses what does not fit, and so do we. */
const COMMENT_BYTES = 256;

export function commentMatch(text: string): Expression {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length >= COMMENT_BYTES) {
    throw new Error(`iptables comment of ${bytes.length} bytes, 255 at most: ${text}`);
  }
  const info = new Uint8Array(COMMENT_BYTES);
  info.set(bytes);
  return match({ name: "comment", revision: 0, info });
}

/** The text of the rule's comment match, or undefined. */
export function matchedComment(rule: readonly FoundExpression[]): string | undefined {
  for (const { name, data } of rule) {
    if (name !== "match") continue;
    const values = matchAttrs.decode(data);
    if (values.name !== "comment" || values.info === undefined) continue;
    const end = values.info.indexOf(0);
    return new TextDecoder().decode(end < 0 ? values.info : values.info.subarray(0, end));
  }
  return undefined;
}
