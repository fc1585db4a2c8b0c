/** Rules: `nft add rule`, `nft delete rule` (linux/netfilter/nf_tables.h, enum nft_rule_attributes). */
import { attrTable, binary, custom, nest, text, u32be, u64be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_APPEND, NLM_F_CREATE } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";
import { type Chain, nameOfTable } from "./table.ts";
import { commentIn } from "./comment.ts";
import { type Expression, expressionList, type FoundExpression } from "./expression.ts";
import { get, listObjects, type NftMessage } from "./message.ts";

const compatAttrs = attrTable("NFTA_RULE_COMPAT", {
  protocol: u32be(nft.NFTA_RULE_COMPAT_PROTO),
  flags: u32be(nft.NFTA_RULE_COMPAT_FLAGS),
});

const ruleAttrs = attrTable("NFTA_RULE", {
  table: text(nft.NFTA_RULE_TABLE),
  chain: text(nft.NFTA_RULE_CHAIN),
  handle: u64be(nft.NFTA_RULE_HANDLE),
  expressions: custom(nft.NFTA_RULE_EXPRESSIONS, expressionList),
  compat: nest(nft.NFTA_RULE_COMPAT, compatAttrs),
  userdata: binary(nft.NFTA_RULE_USERDATA),
});

/** For listings; expressions stay bytes, because callers look into few rules. */
const foundAttrs = attrTable("NFTA_RULE", {
  chain: text(nft.NFTA_RULE_CHAIN),
  handle: u64be(nft.NFTA_RULE_HANDLE),
  expressions: binary(nft.NFTA_RULE_EXPRESSIONS),
  userdata: binary(nft.NFTA_RULE_USERDATA),
});

/** A rule of the kernel's. */
export interface FoundRule {
  chain: string;
  handle: bigint;
  /** Undecoded; expression.ts compares them with ours. */
  readonly expressions: FoundExpression[];
  /** The comment of nft, not of an iptables comment match. */
  readonly comment: string;
  readonly userdata: Uint8Array | undefined;
}

function message(verb: string, type: number, flags: number, { table, name }: Chain, values: object = {}): NftMessage {
  return {
    what: `${verb} rule ${nameOfTable(table)} ${name}`.trimEnd(),
    type,
    flags,
    family: table.family,
    table: ruleAttrs,
    values: { table: table.name, chain: name === "" ? undefined : name, ...values },
  };
}

export interface RuleOptions {
  /** For rules with xtables matches or targets, which need to know the protocol; 0 means any. */
  compat?: { protocol: number };
  /** See comment.ts. */
  userdata?: Uint8Array;
}

function newRule(verb: string, flags: number, chain: Chain, expressions: Expression[], options: RuleOptions) {
  const compat = options.compat && { ...options.compat, flags: 0 };
  return message(verb, nft.NFT_MSG_NEWRULE, NLM_F_CREATE | flags, chain, {
    expressions,
    compat,
    userdata: options.userdata,
  });
}

/** `add rule`: at the end of the chain. */
export function addRule(chain: Chain, expressions: Expression[], options: RuleOptions = {}): NftMessage {
  return newRule("add", NLM_F_APPEND, chain, expressions, options);
}

/** `insert rule`: before all others of the chain. */
export function insertRule(chain: Chain, expressions: Expression[], options: RuleOptions = {}): NftMessage {
  return newRule("insert", 0, chain, expressions, options);
}

/** `delete rule … handle …`. */
export function delRule(chain: Chain, handle: bigint): NftMessage {
  return message("delete", nft.NFT_MSG_DELRULE, 0, chain, { handle });
}

/** `flush chain`. */
export function flushChain(chain: Chain): NftMessage {
  return message("flush", nft.NFT_MSG_DELRULE, 0, chain);
}

/**
 * The rules of one chain in order, or of the table when the chain's name is "". `isWanted` selects rules of long chains
 * by their user data, before they are decoded.
 */
export function listRules(
  socket: NetlinkSocket,
  chain: Chain,
  isWanted?: (userdata: Uint8Array | undefined) => boolean,
): FoundRule[] {
  return listObjects(socket, message("list", nft.NFT_MSG_GETRULE, 0, chain), (payload, rules) => {
    if (isWanted === undefined || isWanted(userdataIn(payload))) rules.push(found(foundAttrs.decode(payload)));
  });
}

/** Without `eachAttribute` and its callbacks: a chain may have thousands of rules. */
function userdataIn(payload: Uint8Array): Uint8Array | undefined {
  for (let at = 0; at + 4 <= payload.length;) {
    const length = payload[at]! | (payload[at + 1]! << 8), type = payload[at + 2]! | (payload[at + 3]! << 8);
    if (type === nft.NFTA_RULE_USERDATA) return payload.subarray(at + 4, at + length);
    if (length < 4) break;
    at += (length + 3) & ~3;
  }
  return undefined;
}

/** The rule with this handle, or undefined. */
export function getRule(socket: NetlinkSocket, chain: Chain, handle: bigint): FoundRule | undefined {
  const values = get(socket, message("get", nft.NFT_MSG_GETRULE, 0, chain, { handle }), foundAttrs);
  return values && found(values);
}

function found({ chain, handle, expressions, userdata }: ReturnType<typeof foundAttrs.decode>): FoundRule {
  let taken: FoundExpression[] | undefined;
  return {
    chain: chain!,
    handle: handle!,
    get expressions() {
      return taken ??= expressions === undefined ? [] : expressionList.read(expressions) as FoundExpression[];
    },
    get comment() {
      return commentIn(userdata);
    },
    userdata,
  };
}
