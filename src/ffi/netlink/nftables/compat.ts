/**
 * Which xtables matches and targets nf_tables can use (linux/netfilter/nf_tables_compat.h, NFNL_MSG_COMPAT_GET).
 * iptables-nft asks in the same way. The kernel loads the module, as it would for a rule.
 */
import { attrTable, text, u32be } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { EINVAL, ENOENT, EPROTONOSUPPORT } from "../../errno.ts";
import {
  NFNL_MSG_COMPAT_GET,
  NFNL_SUBSYS_NFT_COMPAT,
  NFPROTO_IPV4,
  NFTA_COMPAT_NAME,
  NFTA_COMPAT_REV,
  NFTA_COMPAT_TYPE,
} from "../uapi/nf-tables.ts";

export interface Extension {
  kind: "match" | "target";
  name: string;
  revision: number;
}

const compatAttrs = attrTable("NFTA_COMPAT", {
  name: text(NFTA_COMPAT_NAME),
  revision: u32be(NFTA_COMPAT_REV),
  type: u32be(NFTA_COMPAT_TYPE),
});

/** Undefined when the kernel has no nft_compat: then nf_tables can use none of them. */
export function hasExtension(socket: NetlinkSocket, { kind, name, revision }: Extension): boolean | undefined {
  try {
    socket.request({
      what: `get ${kind} ${name}`,
      type: (NFNL_SUBSYS_NFT_COMPAT << 8) | NFNL_MSG_COMPAT_GET,
      body(writer) {
        writer.u8(NFPROTO_IPV4).u8(0).u16be(0);
        compatAttrs.encode(writer, { name, revision, type: kind === "match" ? 0 : 1 });
      },
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, ENOENT, EPROTONOSUPPORT)) return false;
    if (isNetlinkError(error, EINVAL)) return undefined;
    throw error;
  }
}
