/**
 * Tables of iptables in nf_tables, as iptables-nft keeps them. All families' changes are one transaction.
 *
 * Nothing here takes longer when there are more rules, unless a plan asks for the rules of a chain. A jump is found
 * without a look at its neighbours, because a transaction numbers its rules one after another: where a plan appends the
 * jumps right behind the rules of the chain they go to, they have the next numbers.
 */
import { commitUnchanged } from "../ffi/netlink/nftables/batch.ts";
import { addBaseChain, type Chain, chainUse, createChain, delChain } from "../ffi/netlink/nftables/chain.ts";
import { isFreeFor, ownerTag, ownerTagIn } from "../ffi/netlink/nftables/comment.ts";
import { comparedValue } from "../ffi/netlink/nftables/expr/cmp.ts";
import { type Expression, isSameRule } from "../ffi/netlink/nftables/expr/expression.ts";
import { jumpTarget } from "../ffi/netlink/nftables/expr/immediate.ts";
import { matchedComment } from "../ffi/netlink/nftables/expr/match.ts";
import { loadsSource } from "../ffi/netlink/nftables/expr/payload.ts";
import type { NftMessage } from "../ffi/netlink/nftables/message.ts";
import {
  addRule,
  delRule,
  flushChain,
  type FoundRule as NftRule,
  getRule,
  insertRule,
  listRules,
} from "../ffi/netlink/nftables/rule.ts";
import { addTable, tableUse } from "../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../ffi/netlink/socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../ffi/netlink/uapi/nf-tables.ts";
import { ruleExpressions } from "./nft-rule.ts";
import { builtInChains, type Family, protocolNumbers, type Rule, type TableName } from "./rule.ts";
import type { FoundRule, Plan, Table, TableChange } from "./table.ts";

interface FoundInNft extends FoundRule {
  handle: bigint;
}

/** Answers false when the kernel has no nf_tables. `onChange` is called when there is something to be changed. */
export function changeTable(
  socket: NetlinkSocket,
  name: TableName,
  families: readonly Family[],
  plan: Plan,
  onChange?: () => void,
): boolean {
  return commitUnchanged(socket, () => {
    const messages: NftMessage[] = [];
    for (const family of families) {
      const change = new NftChange(socket, name, family);
      plan(change);
      messages.push(...change.messages());
    }
    if (messages.length > 0) onChange?.();
    return messages;
  });
}

export function readTable(socket: NetlinkSocket, name: TableName, family: Family): Table {
  return new NftChange(socket, name, family);
}

class NftChange implements TableChange {
  private readonly table: { family: number; name: string };
  private readonly uses = new Map<string, number | undefined>();
  private readonly listed = new Map<string, FoundInNft[]>();
  /** Of the table and the kernel's chains, which come first. */
  private readonly frame: NftMessage[] = [];
  private readonly changes: NftMessage[] = [];
  private readonly deleted: FoundInNft[] = [];
  private readonly leaving: string[] = [];

  constructor(private readonly socket: NetlinkSocket, private readonly name: TableName, readonly family: Family) {
    this.table = { family: family === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name };
  }

  hasChain(name: string): boolean {
    return this.use(name) !== undefined;
  }

  rules(chain: string): FoundInNft[] {
    let rules = this.listed.get(chain);
    if (rules === undefined) {
      rules = [];
      for (const rule of listRules(this.socket, this.chain(chain))) rules.push(found(rule, this.family));
      this.listed.set(chain, rules);
    }
    return rules;
  }

  freeRules(chain: string, owner = ""): FoundInNft[] {
    const key = `${chain} ${owner}`;
    let rules = this.listed.get(key);
    if (rules === undefined) {
      const tag = ownerTag(owner);
      rules = [];
      for (const rule of listRules(this.socket, this.chain(chain), (userdata) => isFreeFor(tag, userdata))) {
        rules.push(found(rule, this.family));
      }
      this.listed.set(key, rules);
    }
    return rules;
  }

  /** Without a chain all rules of the table come. */
  allRules(): FoundInNft[] {
    return this.rules("");
  }

  jumps(from: string, to: string): FoundInNft[] {
    const use = this.use(to);
    if (use === undefined) return [];
    const rules = this.rules(to);
    const count = use - rules.length, last = rules[rules.length - 1]?.handle;
    if (count === 0) return [];
    const guessed: FoundInNft[] = [];
    for (let next = 1n; last !== undefined && next <= count; next++) {
      const rule = getRule(this.socket, this.chain(from), last + next);
      if (rule === undefined || jumpTarget(rule.expressions) !== to) break;
      guessed.push(found(rule, this.family));
    }
    return guessed.length === count ? guessed : this.rules(from).filter(({ leadsTo }) => leadsTo === to);
  }

  createChain(name: string): void {
    this.changes.push(createChain(this.chain(name)));
  }

  append(chain: string, rule: Rule, owner?: string): void {
    this.ensureBuiltIn(chain);
    this.changes.push(addRule(this.chain(chain), ruleExpressions(rule, this.family), this.options(rule, owner)));
  }

  insert(chain: string, rule: Rule): void {
    this.ensureBuiltIn(chain);
    this.changes.push(insertRule(this.chain(chain), ruleExpressions(rule, this.family), this.options(rule)));
  }

  delete(rule: FoundRule): void {
    const { handle } = rule as FoundInNft;
    this.deleted.push(rule as FoundInNft);
    this.changes.push(delRule(this.chain(rule.chain), handle));
  }

  flush(chain: string): void {
    for (const rule of this.rules(chain)) this.deleted.push(rule);
    this.changes.push(flushChain(this.chain(chain)));
  }

  deleteChain(name: string): void {
    this.leaving.push(name);
  }

  messages(): NftMessage[] {
    const messages = [...this.frame, ...this.changes];
    if (messages.length > 0 && !this.tableExists()) messages.unshift(addTable(this.table));
    for (const name of this.leaving) messages.push(flushChain(this.chain(name)));
    for (const name of this.leaving) if (!this.isStillUsed(name)) messages.push(delChain(this.chain(name)));
    return messages;
  }

  private chain(name: string): Chain {
    return { table: this.table, name };
  }

  /** How many rules are in the chain and lead to it. */
  private use(chain: string): number | undefined {
    if (!this.uses.has(chain)) this.uses.set(chain, chainUse(this.socket, this.chain(chain)));
    return this.uses.get(chain);
  }

  private tableExists(): boolean {
    for (const use of this.uses.values()) if (use !== undefined) return true;
    return tableUse(this.socket, this.table) !== undefined;
  }

  /** By a rule that is neither deleted nor in a chain that is. */
  private isStillUsed(name: string): boolean {
    let left = (this.use(name) ?? 0) - this.rules(name).length;
    for (const { leadsTo, chain } of this.deleted) if (leadsTo === name && !this.leaving.includes(chain)) left--;
    for (const chain of this.leaving) for (const { leadsTo } of this.rules(chain)) if (leadsTo === name) left--;
    return left > 0;
  }

  /** As iptables makes them on its first use. */
  private ensureBuiltIn(chain: string): void {
    const place = builtInChains[this.name][chain];
    if (place === undefined || this.use(chain) !== undefined) return;
    this.frame.push(addBaseChain(this.chain(chain), { type: this.name, ...place }));
  }

  private options({ protocol }: Rule, owner?: string) {
    return {
      compat: { protocol: protocol === undefined ? 0 : protocolNumbers[protocol] },
      userdata: owner === undefined ? undefined : ownerTag(owner),
    };
  }
}

function found(rule: NftRule, family: Family): FoundInNft {
  return {
    handle: rule.handle,
    chain: rule.chain,
    get leadsTo() {
      return jumpTarget(rule.expressions);
    },
    get comment() {
      return matchedComment(rule.expressions);
    },
    get source() {
      return comparedSource(rule, family);
    },
    get owner() {
      return ownerTagIn(rule.userdata);
    },
    is: (wanted) => isSameRule(expressionsOf(wanted, family), rule.expressions),
  };
}

let compared: { rule: Rule; family: Family; expressions: Expression[] } | undefined;

/** One rule is compared with many, one after the other. */
function expressionsOf(rule: Rule, family: Family): Expression[] {
  if (compared?.rule !== rule || compared.family !== family) {
    compared = { rule, family, expressions: ruleExpressions(rule, family) };
  }
  return compared.expressions;
}

/** Loading and comparing stand one behind the other, with a mask between them in some. */
function comparedSource({ expressions }: NftRule, family: Family): Uint8Array | undefined {
  const at = expressions.findIndex((each) => loadsSource(each, family === 4 ? 4 : 16));
  return at < 0 ? undefined : comparedValue(expressions.slice(at));
}
