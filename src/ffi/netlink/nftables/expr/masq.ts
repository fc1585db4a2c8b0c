/**
 * Translates the source address into an address of the outgoing link (enum nft_masq_attributes, none of them used).
 *
 *     masquerade    [ masq ]
 */
import { attrTable } from "../../attrs.ts";
import { expression } from "./expression.ts";

export const masquerade = expression("masq", attrTable("NFTA_MASQ", {}))({});
