/**
 * The packet's source becomes the address of the link it leaves by (linux/netfilter/nf_tables.h, enum
 * nft_masq_attributes, none of them used).
 *
 *     masquerade    [ masq ]
 */
import { attrTable } from "../../attrs.ts";
import { expression } from "./expression.ts";

export const masquerade = expression("masq", attrTable("NFTA_MASQ", {}))({});
