/** Tables, chains and named counters: `nft add`, `nft delete` (linux/netfilter/nf_tables.h). */
import * as nft from "../uapi/nf-tables.ts";
import { fromUtf8 } from "../../libc.ts";
import { type AnyTable, attrTable, binary, custom, exactText, nest, text, u32be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { eachAttribute, NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import { comment } from "./comment.ts";
import { familyName, get, type NftMessage } from "./message.ts";
import { counterAttrs } from "./action.ts";

export interface Table {
  family: number;
  name: string;
}

export const tableAttrs = attrTable("NFTA_TABLE", {
  name: exactText(nft.NFTA_TABLE_NAME),
  flags: u32be(nft.NFTA_TABLE_FLAGS),
  use: u32be(nft.NFTA_TABLE_USE),
  userdata: binary(nft.NFTA_TABLE_USERDATA),
});

export function nameOfTable({ family, name }: Table): string {
  return `${familyName(family)} ${name}`;
}

function tableMessage(verb: string, type: number, table: Table, values: object = {}): NftMessage {
  const { family, name } = table;
  const flags = type === nft.NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0;
  return {
    what: `${verb} table ${nameOfTable(table)}`,
    type,
    flags,
    family,
    table: tableAttrs,
    values: { name, ...values },
  };
}

/** `add table`: does nothing when it exists. Kernels before 5.10 drop the comment. */
export function addTable(table: Table, text?: string): NftMessage {
  return tableMessage("add", nft.NFT_MSG_NEWTABLE, table, text === undefined ? {} : { userdata: comment(text) });
}

/** Turns the message into `create table` of a dormant table, whose chains see no packets. */
export function newAndDormant(added: NftMessage): NftMessage {
  return {
    ...added,
    flags: added.flags | NLM_F_EXCL,
    values: { ...added.values, flags: nft.NFT_TABLE_F_DORMANT },
  };
}

/** `delete table`, with everything in it. */
export function delTable(table: Table): NftMessage {
  return tableMessage("delete", nft.NFT_MSG_DELTABLE, table);
}

/** How many chains, sets and objects are in the table; undefined when there is no such table. */
export function tableUse(socket: NetlinkSocket, table: Table): number | undefined {
  return get(socket, tableMessage("get", nft.NFT_MSG_GETTABLE, table), tableAttrs)?.use;
}

export interface Chain {
  table: Table;
  name: string;
}

/** The hook of a base chain: `type nat hook postrouting priority 100; policy accept;`. */
export interface Hook {
  type: "nat" | "filter";
  hook: number;
  priority: number;
  /** In a table of the family netdev: the chain sees what comes in by this link. */
  device?: string;
}

const hookAttrs = attrTable("NFTA_HOOK", {
  number: u32be(nft.NFTA_HOOK_HOOKNUM),
  priority: u32be(nft.NFTA_HOOK_PRIORITY),
  device: text(nft.NFTA_HOOK_DEV),
  devices: custom<string[]>(nft.NFTA_HOOK_DEVS, { write: () => {}, read: readNames }),
});

/** Each is an NFTA_DEVICE_NAME. */
function readNames(payload: Uint8Array): string[] {
  const names: string[] = [];
  eachAttribute(payload, (_type, name) => void names.push(fromUtf8(name.subarray(0, -1))));
  return names;
}

export const chainAttrs = attrTable("NFTA_CHAIN", {
  table: exactText(nft.NFTA_CHAIN_TABLE),
  name: exactText(nft.NFTA_CHAIN_NAME),
  hook: nest(nft.NFTA_CHAIN_HOOK, hookAttrs),
  policy: u32be(nft.NFTA_CHAIN_POLICY),
  type: text(nft.NFTA_CHAIN_TYPE),
  use: u32be(nft.NFTA_CHAIN_USE),
});

/** Makes the function that makes messages about things of a kind in a table: `add chain ip nat POSTROUTING`. */
export function messagesAbout(kind: string, attributes: AnyTable) {
  return (
    verb: string,
    type: number,
    flags: number,
    { table, name }: { table: Table; name: string },
    values: object = {},
  ): NftMessage => ({
    what: `${verb} ${kind} ${nameOfTable(table)} ${name}`,
    type,
    flags,
    family: table.family,
    table: attributes,
    values: { table: table.name, name, ...values },
  });
}

const chainMessage = messagesAbout("chain", chainAttrs);

/** `create chain`: fails when it exists. */
export function createChain(chain: Chain): NftMessage {
  return chainMessage("create", nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, chain);
}

/** `add chain` without a hook: does nothing when it exists. */
export function addChain(chain: Chain): NftMessage {
  return chainMessage("add", nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain);
}

/** `add chain`: does nothing when it exists with the same hook. */
export function addBaseChain(chain: Chain, { type, hook, priority, device }: Hook): NftMessage {
  return chainMessage("add", nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain, {
    hook: { number: hook, priority, device },
    policy: nft.NF_ACCEPT,
    type,
  });
}

/** `delete chain`. Fails while it has rules, or something jumps to it. */
export function delChain(chain: Chain): NftMessage {
  return chainMessage("delete", nft.NFT_MSG_DELCHAIN, 0, chain);
}

/** NFT_CHAIN_MAXNAMELEN of linux/netfilter/nf_tables.h, without the terminating zero. */
const LONGEST_NAME = 255;

/** The number of rules in the chain plus the number of jumps to it; undefined when there is no such chain. */
export function chainUse(socket: NetlinkSocket, chain: Chain): number | undefined {
  if (chain.name.length > LONGEST_NAME) return undefined;
  return get(socket, chainMessage("get", nft.NFT_MSG_GETCHAIN, 0, chain), chainAttrs)?.use;
}

const objectAttrs = attrTable("NFTA_OBJ", {
  table: text(nft.NFTA_OBJ_TABLE),
  name: text(nft.NFTA_OBJ_NAME),
  type: u32be(nft.NFTA_OBJ_TYPE),
  data: nest(nft.NFTA_OBJ_DATA, counterAttrs),
  use: u32be(nft.NFTA_OBJ_USE),
});

const counterMessage = messagesAbout("counter", objectAttrs);
const COUNTER = { type: nft.NFT_OBJECT_COUNTER };

/** `create counter`: fails when it exists. */
export function createCounter(table: Table, name: string): NftMessage {
  const values = { ...COUNTER, data: { bytes: 0n, packets: 0n } };
  return counterMessage("create", nft.NFT_MSG_NEWOBJ, NLM_F_CREATE | NLM_F_EXCL, { table, name }, values);
}

/** `delete counter`. Fails while something refers to it. */
export function delCounter(table: Table, name: string): NftMessage {
  return counterMessage("delete", nft.NFT_MSG_DELOBJ, 0, { table, name }, COUNTER);
}

/** How many map elements and rules refer to the counter; undefined when there is no such counter. */
export function counterUse(socket: NetlinkSocket, table: Table, name: string): number | undefined {
  return get(socket, counterMessage("get", nft.NFT_MSG_GETOBJ, 0, { table, name }, COUNTER), objectAttrs)?.use;
}
