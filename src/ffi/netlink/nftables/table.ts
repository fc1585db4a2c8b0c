/** Tables: `nft add table`, `nft delete table` (linux/netfilter/nf_tables.h, enum nft_table_attributes). */
import { attrTable, binary, text, u32be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import {
  NFT_MSG_DELTABLE,
  NFT_MSG_GETTABLE,
  NFT_MSG_NEWTABLE,
  NFT_TABLE_F_DORMANT,
  NFTA_TABLE_FLAGS,
  NFTA_TABLE_NAME,
  NFTA_TABLE_USE,
  NFTA_TABLE_USERDATA,
} from "../uapi/nf-tables.ts";
import { comment } from "./comment.ts";
import { familyName, get, type NftMessage } from "./message.ts";

export interface Table {
  family: number;
  name: string;
}

const tableAttrs = attrTable("NFTA_TABLE", {
  name: text(NFTA_TABLE_NAME),
  flags: u32be(NFTA_TABLE_FLAGS),
  use: u32be(NFTA_TABLE_USE),
  userdata: binary(NFTA_TABLE_USERDATA),
});

export function nameOf({ family, name }: Table): string {
  return `${familyName(family)} ${name}`;
}

function message(verb: string, type: number, table: Table, values: object = {}): NftMessage {
  const { family, name } = table;
  const flags = type === NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0;
  return {
    what: `${verb} table ${nameOf(table)}`,
    type,
    flags,
    family,
    table: tableAttrs,
    values: { name, ...values },
  };
}

/** `add table`: does nothing when it exists. Kernels before 5.10 drop the comment. */
export function addTable(table: Table, text?: string): NftMessage {
  return message("add", NFT_MSG_NEWTABLE, table, text === undefined ? {} : { userdata: comment(text) });
}

/** Turns the message into `create table` of a dormant table, whose chains see no packets. */
export function newAndDormant(added: NftMessage): NftMessage {
  return {
    ...added,
    flags: added.flags | NLM_F_EXCL,
    values: { ...added.values, flags: NFT_TABLE_F_DORMANT },
  };
}

/** `delete table`, with everything in it. */
export function delTable(table: Table): NftMessage {
  return message("delete", NFT_MSG_DELTABLE, table);
}

/** How many chains, sets and objects are in the table; undefined when there is no such table. */
export function tableUse(socket: NetlinkSocket, table: Table): number | undefined {
  return get(socket, message("get", NFT_MSG_GETTABLE, table), tableAttrs)?.use;
}
