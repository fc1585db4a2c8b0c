/**
 * Tables of iptables in nf_tables, as iptables-nft keeps them. The changes of all families are one transaction.
 *
 * No call takes longer when there are more rules, unless a plan lists the rules of a chain. A jump is found without
 * listing its chain, because a transaction gives its rules consecutive handles: a plan appends the jumps right after the
 * rules of the chain they lead to, so they have the next handles.
 */
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import {
  addBaseChain,
  addTable,
  type Chain,
  chainUse,
  createChain,
  delChain,
  tableUse,
} from "../../ffi/netlink/nftables/table.ts";
import { isFreeFor, ownerTag, ownerTagIn } from "../../ffi/netlink/nftables/comment.ts";
import { comparedValue } from "../../ffi/netlink/nftables/compare.ts";
import { type Expression, isSameRule } from "../../ffi/netlink/nftables/expression.ts";
import { jumpTarget } from "../../ffi/netlink/nftables/action.ts";
import { matchedComment, matchedPorts } from "../../ffi/netlink/nftables/extension.ts";
import { loadsDestination, loadsSource } from "../../ffi/netlink/nftables/packet-match.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import {
  addRule,
  delRule,
  flushChain,
  type FoundRule as NftRule,
  getRule,
  insertRule,
  listRules,
} from "../../ffi/netlink/nftables/rule.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { ruleExpressions } from "./nft-rule.ts";
import { builtInChains, type Family, type IptablesRule, protocolNumbers, type TableName } from "./rule.ts";
import type { IptablesTable, PresentRule, TableChange, TablePlan } from "./table.ts";

interface FoundInNft extends PresentRule {
  handle: bigint;
}

/** Returns false when the kernel has no nf_tables. Calls `onChange` when there is something to change. */
export function changeTable(
  socket: NetlinkSocket,
  name: TableName,
  families: readonly Family[],
  plan: TablePlan,
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

export function readTable(socket: NetlinkSocket, name: TableName, family: Family): IptablesTable {
  return new NftChange(socket, name, family);
}

class NftChange implements TableChange {
  private readonly table: { family: number; name: string };
  private readonly uses = new Map<string, number | undefined>();
  private readonly listed = new Map<string, FoundInNft[]>();
  /** Makes the kernel's own chains. */
  private readonly builtIns: NftMessage[] = [];
  private readonly changes: NftMessage[] = [];
  private readonly deletedRules: FoundInNft[] = [];
  private readonly deletedChains: string[] = [];

  constructor(private readonly socket: NetlinkSocket, private readonly name: TableName, readonly family: Family) {
    this.table = { family: family === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name };
  }

  hasChain(name: string): boolean {
    return this.use(name) !== undefined;
  }

  rules(chain: string): FoundInNft[] {
    return this.listOnce(chain, chain);
  }

  freeRules(chain: string, owner: string): FoundInNft[] {
    const tag = ownerTag(owner);
    return this.listOnce(`${chain} ${owner}`, chain, (userdata) => isFreeFor(tag, userdata));
  }

  /** Without the name of a chain, the kernel lists all rules of the table. */
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

  append(chain: string, rule: IptablesRule, owner?: string): void {
    this.ensureBuiltIn(chain);
    this.changes.push(addRule(this.chain(chain), ruleExpressions(rule, this.family), this.options(rule, owner)));
  }

  insert(chain: string, rule: IptablesRule, owner?: string): void {
    this.ensureBuiltIn(chain);
    this.changes.push(insertRule(this.chain(chain), ruleExpressions(rule, this.family), this.options(rule, owner)));
  }

  delete(rule: PresentRule): void {
    const { handle } = rule as FoundInNft;
    this.deletedRules.push(rule as FoundInNft);
    this.changes.push(delRule(this.chain(rule.chain), handle));
  }

  flush(chain: string): void {
    for (const rule of this.rules(chain)) this.deletedRules.push(rule);
    this.changes.push(flushChain(this.chain(chain)));
  }

  deleteChain(name: string): void {
    this.deletedChains.push(name);
  }

  messages(): NftMessage[] {
    const messages = [...this.builtIns, ...this.changes];
    if (messages.length > 0 && !this.tableExists()) messages.unshift(addTable(this.table));
    for (const name of this.deletedChains) messages.push(flushChain(this.chain(name)));
    for (const name of this.deletedChains) if (!this.isStillUsed(name)) messages.push(delChain(this.chain(name)));
    return messages;
  }

  private listOnce(key: string, chain: string, isWanted?: (userdata?: Uint8Array) => boolean): FoundInNft[] {
    let rules = this.listed.get(key);
    if (rules === undefined) {
      rules = [];
      for (const rule of listRules(this.socket, this.chain(chain), isWanted)) rules.push(found(rule, this.family));
      this.listed.set(key, rules);
    }
    return rules;
  }

  private chain(name: string): Chain {
    return { table: this.table, name };
  }

  /** The number of rules in the chain plus the number of jumps to it. */
  private use(chain: string): number | undefined {
    if (!this.uses.has(chain)) this.uses.set(chain, chainUse(this.socket, this.chain(chain)));
    return this.uses.get(chain);
  }

  private tableExists(): boolean {
    for (const use of this.uses.values()) if (use !== undefined) return true;
    return tableUse(this.socket, this.table) !== undefined;
  }

  /** Whether a rule leads to the chain that is neither deleted nor in a deleted chain. */
  private isStillUsed(name: string): boolean {
    let jumps = (this.use(name) ?? 0) - this.rules(name).length;
    for (const { leadsTo, chain } of this.deletedRules) {
      if (leadsTo === name && !this.deletedChains.includes(chain)) jumps--;
    }
    for (const chain of this.deletedChains) {
      for (const { leadsTo } of this.rules(chain)) if (leadsTo === name) jumps--;
    }
    return jumps > 0;
  }

  /** Makes a chain of the kernel's as iptables does when it first uses it. */
  private ensureBuiltIn(chain: string): void {
    const place = builtInChains[this.name][chain];
    if (place === undefined || this.use(chain) !== undefined) return;
    this.builtIns.push(addBaseChain(this.chain(chain), { type: this.name, ...place }));
  }

  private options({ protocol }: IptablesRule, owner?: string) {
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
      return comparedAddress(rule, family, loadsSource);
    },
    get owner() {
      return ownerTagIn(rule.userdata);
    },
    get destination() {
      return comparedAddress(rule, family, loadsDestination);
    },
    get destinationPorts() {
      return matchedPorts(rule.expressions);
    },
    matches(conditions) {
      // Without the counter and the verdict, which come last.
      const wanted = ruleExpressions({ ...conditions, target: "RETURN" }, family).slice(0, -2);
      let next = 0;
      for (const each of rule.expressions) if (next < wanted.length && isSameRule([wanted[next]!], [each])) next++;
      return next === wanted.length;
    },
    is: (wanted) => isSameRule(expressionsOf(wanted, family), rule.expressions),
  };
}

let compared: { rule: IptablesRule; family: Family; expressions: Expression[] } | undefined;

/** Keeps the last encoding: one rule is usually compared with many. */
function expressionsOf(rule: IptablesRule, family: Family): Expression[] {
  if (compared?.rule !== rule || compared.family !== family) {
    compared = { rule, family, expressions: ruleExpressions(rule, family) };
  }
  return compared.expressions;
}

/** The rule loads the address and compares it next, in some rules with a mask in between. */
function comparedAddress(
  { expressions }: NftRule,
  family: Family,
  loads: typeof loadsSource,
): Uint8Array | undefined {
  const at = expressions.findIndex((each) => loads(each, family === 4 ? 4 : 16));
  return at < 0 ? undefined : comparedValue(expressions.slice(at));
}
