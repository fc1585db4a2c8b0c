/** Chains: `nft add chain`, `nft delete chain` (linux/netfilter/nf_tables.h, enum nft_chain_attributes). */
import { attrTable, nest, text, u32be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import {
  NF_ACCEPT,
  NFT_MSG_DELCHAIN,
  NFT_MSG_GETCHAIN,
  NFT_MSG_NEWCHAIN,
  NFTA_CHAIN_HOOK,
  NFTA_CHAIN_NAME,
  NFTA_CHAIN_POLICY,
  NFTA_CHAIN_TABLE,
  NFTA_CHAIN_TYPE,
  NFTA_CHAIN_USE,
  NFTA_HOOK_HOOKNUM,
  NFTA_HOOK_PRIORITY,
} from "../uapi/nf-tables.ts";
import { get, type NftMessage } from "./message.ts";
import { nameOf, type Table } from "./table.ts";

export interface Chain {
  table: Table;
  name: string;
}

/** The hook of a base chain: `type nat hook postrouting priority 100; policy accept;`. */
export interface Hook {
  type: "nat" | "filter";
  hook: number;
  priority: number;
}

const hookAttrs = attrTable("NFTA_HOOK", {
  number: u32be(NFTA_HOOK_HOOKNUM),
  priority: u32be(NFTA_HOOK_PRIORITY),
});

const chainAttrs = attrTable("NFTA_CHAIN", {
  table: text(NFTA_CHAIN_TABLE),
  name: text(NFTA_CHAIN_NAME),
  hook: nest(NFTA_CHAIN_HOOK, hookAttrs),
  policy: u32be(NFTA_CHAIN_POLICY),
  type: text(NFTA_CHAIN_TYPE),
  use: u32be(NFTA_CHAIN_USE),
});

function message(verb: string, type: number, flags: number, { table, name }: Chain, values: object = {}): NftMessage {
  return {
    what: `${verb} chain ${nameOf(table)} ${name}`,
    type,
    flags,
    family: table.family,
    table: chainAttrs,
    values: { table: table.name, name, ...values },
  };
}

/** `create chain`: fails when it exists. */
export function createChain(chain: Chain): NftMessage {
  return message("create", NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, chain);
}

/** `add chain` without a hook: does nothing when it exists. */
export function addChain(chain: Chain): NftMessage {
  return message("add", NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain);
}

/** `add chain`: does nothing when it exists with the same hook. */
export function addBaseChain(chain: Chain, { type, hook, priority }: Hook): NftMessage {
  return message("add", NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain, {
    hook: { number: hook, priority },
    policy: NF_ACCEPT,
    type,
  });
}

/** `delete chain`. Fails while it has rules, or something jumps to it. */
export function delChain(chain: Chain): NftMessage {
  return message("delete", NFT_MSG_DELCHAIN, 0, chain);
}

/** NFT_CHAIN_MAXNAMELEN of linux/netfilter/nf_tables.h, without the terminating zero. */
const LONGEST_NAME = 255;

/** The number of rules in the chain plus the number of jumps to it; undefined when there is no such chain. */
export function chainUse(socket: NetlinkSocket, chain: Chain): number | undefined {
  if (chain.name.length > LONGEST_NAME) return undefined;
  return get(socket, message("get", NFT_MSG_GETCHAIN, 0, chain), chainAttrs)?.use;
}
