/** Reading and writing rules of the table that netavark and we share. */
import { type Expression, type FoundExpression, isSameRule } from "../../../ffi/netlink/nftables/expression.ts";
import { isInRuleSet } from "../../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  addRule,
  type FoundRule,
  insertRule,
  listRules,
  type RuleOptions,
} from "../../../ffi/netlink/nftables/rule.ts";
import { createRuleSet, protocolKey } from "../../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { protocolNumbers } from "../../../interop/iptables/rule.ts";
import { chain, table } from "./nft-names.ts";
import { type PlacedRule, tcpOrUdp } from "./nft-rules.ts";

/** All rules of the table, by chain; none when there is no such table. */
export class TableRules {
  private readonly byChain = new Map<string, FoundRule[]>();

  constructor(socket: NetlinkSocket) {
    for (const rule of listRules(socket, chain(""))) {
      this.byChain.getOrInsertComputed(rule.chain, () => []).push(rule);
    }
  }

  in(chainName: string): readonly FoundRule[] {
    return this.byChain.get(chainName) ?? [];
  }

  all(): FoundRule[] {
    return [...this.byChain.values()].flat();
  }

  has({ chain, expressions }: PlacedRule): boolean {
    return this.in(chain).some((found) => areSameExpressions(expressions, found.expressions));
  }
}

export function areSameExpressions(wanted: readonly Expression[], found: readonly FoundExpression[]): boolean {
  return isSameRule(wanted as Expression[], found as FoundExpression[]);
}

/** Whether the rule has these expressions, one after the other. */
export function mentions(found: readonly FoundExpression[], wanted: readonly Expression[]): boolean {
  if (wanted.length === 0) return false;
  for (let at = 0; at + wanted.length <= found.length; at++) {
    if (areSameExpressions(wanted, found.slice(at, at + wanted.length))) return true;
  }
  return false;
}

export function writeRule(
  { chain: name, expressions, isFirst }: PlacedRule,
  options: RuleOptions = {},
): NftMessage[] {
  const place = isFirst ? insertRule : addRule, messages: NftMessage[] = [];
  const own: Expression[] = [];
  for (const each of expressions) {
    if (each !== tcpOrUdp) {
      own.push(each);
      continue;
    }
    const { tcp, udp } = protocolNumbers;
    const set = createRuleSet(table, protocolKey, [new Uint8Array([tcp]), new Uint8Array([udp])]);
    messages.push(...set.messages);
    own.push(isInRuleSet(set));
  }
  return [...messages, place(chain(name), own, options)];
}
