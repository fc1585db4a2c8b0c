/** Rules of ours in a chain: whether they are still as we wrote them, and what to send when they are not. */
import type { Chain } from "../../../ffi/netlink/nftables/table.ts";
import { type Expression, type FoundExpression, isSameRule } from "../../../ffi/netlink/nftables/expression.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { addRule, delRule, type FoundRule, insertRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";

export interface OwnRules {
  chain: Chain;
  /** In order. */
  rules: readonly Expression[][];
  /** They stand before the other rules of the chain. */
  first?: boolean;
  /** Which rules of the chain are in the place of ours. Without it, those that are the same as one of ours. */
  replaces?(rule: readonly FoundExpression[]): boolean;
}

export function addRules({ chain, rules, first }: OwnRules): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const rule of rules) {
    if (first) messages.unshift(insertRule(chain, rule));
    else messages.push(addRule(chain, rule));
  }
  return messages;
}

export function hasRules(socket: NetlinkSocket, own: OwnRules): boolean {
  return areComplete(own.rules, listPresent(socket, own));
}

/** Nothing if the rules are right; else deletes what is in their place and writes all of them again. */
export function mendRules(socket: NetlinkSocket, own: OwnRules): NftMessage[] {
  const present = listPresent(socket, own);
  if (areComplete(own.rules, present)) return [];
  return [...present.map(({ handle }) => delRule(own.chain, handle)), ...addRules(own)];
}

function listPresent(socket: NetlinkSocket, { chain, rules, replaces }: OwnRules): FoundRule[] {
  const isOurs = replaces ?? ((found) => rules.some((rule) => isSameRule(rule, found as FoundExpression[])));
  return listRules(socket, chain).filter(({ expressions }) => isOurs(expressions));
}

function areComplete(rules: readonly Expression[][], present: readonly FoundRule[]): boolean {
  return rules.every((rule, index) => present[index] && isSameRule(rule, present[index].expressions));
}
