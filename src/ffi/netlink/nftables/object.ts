/** Named counters: `nft add counter`, `nft delete counter` (linux/netfilter/nf_tables.h, enum nft_object_attributes). */
import { attrTable, nest, text, u32be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import {
  NFT_MSG_DELOBJ,
  NFT_MSG_GETOBJ,
  NFT_MSG_NEWOBJ,
  NFT_OBJECT_COUNTER,
  NFTA_OBJ_DATA,
  NFTA_OBJ_NAME,
  NFTA_OBJ_TABLE,
  NFTA_OBJ_TYPE,
  NFTA_OBJ_USE,
} from "../uapi/nf-tables.ts";
import { counterAttrs } from "./expr/counter.ts";
import { get, type NftMessage } from "./message.ts";
import { nameOf, type Table } from "./table.ts";

const objectAttrs = attrTable("NFTA_OBJ", {
  table: text(NFTA_OBJ_TABLE),
  name: text(NFTA_OBJ_NAME),
  type: u32be(NFTA_OBJ_TYPE),
  data: nest(NFTA_OBJ_DATA, counterAttrs),
  use: u32be(NFTA_OBJ_USE),
});

function message(
  verb: string,
  type: number,
  flags: number,
  table: Table,
  name: string,
  values: object = {},
): NftMessage {
  return {
    what: `${verb} counter ${nameOf(table)} ${name}`,
    type,
    flags,
    family: table.family,
    table: objectAttrs,
    values: { table: table.name, name, type: NFT_OBJECT_COUNTER, ...values },
  };
}

/** `create counter`: fails when it exists. */
export function createCounter(table: Table, name: string): NftMessage {
  const data = { bytes: 0n, packets: 0n };
  return message("create", NFT_MSG_NEWOBJ, NLM_F_CREATE | NLM_F_EXCL, table, name, { data });
}

/** `delete counter`. Fails while something refers to it. */
export function delCounter(table: Table, name: string): NftMessage {
  return message("delete", NFT_MSG_DELOBJ, 0, table, name);
}

/** How many map elements and rules refer to the counter; undefined when there is no such counter. */
export function counterUse(socket: NetlinkSocket, table: Table, name: string): number | undefined {
  return get(socket, message("get", NFT_MSG_GETOBJ, 0, table, name), objectAttrs)?.use;
}
