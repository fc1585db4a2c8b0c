/**
 * Counts packets and bytes (enum nft_counter_attributes).
 *
 *     counter    [ counter pkts 0 bytes 0 ]
 */
import { attrTable, u64be } from "../../attrs.ts";
import { NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS } from "../../uapi/nf-tables.ts";
import { expression } from "./expression.ts";

/** Also the attributes of a named counter. */
export const counterAttrs = attrTable("NFTA_COUNTER", {
  bytes: u64be(NFTA_COUNTER_BYTES),
  packets: u64be(NFTA_COUNTER_PACKETS),
});

export const counter = expression("counter", counterAttrs)({ bytes: 0n, packets: 0n });
