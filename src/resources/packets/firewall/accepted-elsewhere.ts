/**
 * Whether a chain of others accepts what containers send, as far as its rules say so plainly: by the link that it comes by, by
 * a subnet that it comes from, or for everybody. Answers are not looked at: there are many ways to accept them.
 */
import { accept, backToCaller, drop, jumpTarget } from "../../../ffi/netlink/nftables/action.ts";
import { equals } from "../../../ffi/netlink/nftables/compare.ts";
import { type Expression, type FoundExpression, isSameRule } from "../../../ffi/netlink/nftables/expression.ts";
import { from, inputLink, ofFamily } from "../../../ffi/netlink/nftables/packet-match.ts";
import { type FoundRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { Chain } from "../../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import type { Prefix } from "../../../net/address.ts";

/** What all packets of the containers have in common. */
export interface Senders {
  /** Undefined where each container has its own. */
  link: string | undefined;
  subnets: readonly Prefix[];
}

/** All that the chain sees of them. */
export function acceptsFrom({ link, subnets }: Senders, chain: Chain, socket: NetlinkSocket): boolean {
  const rules = listRules(socket, { ...chain, name: "" });
  return subnets.every((subnet) => {
    const isUnseen = chain.table.family === (subnet.bytes.length === 4 ? NFPROTO_IPV6 : NFPROTO_IPV4);
    return isUnseen || acceptsIn(chain.name, rules, matchesOf(link, subnet), new Set());
  });
}

/** `asked`: chains that a jump has led to. Each is looked at once. */
function acceptsIn(name: string, rules: readonly FoundRule[], matches: Expression[][], asked: Set<string>): boolean {
  if (asked.has(name)) return false;
  asked.add(name);
  for (const { expressions } of rules.filter(({ chain }) => chain === name)) {
    const conditions = expressions.filter(({ name }) => name !== "counter"), verdict = conditions.splice(-1);
    if (!holds(conditions, matches)) continue;
    if (isSameRule([accept], verdict)) return true;
    if ([drop, backToCaller].some((end) => isSameRule([end], verdict)) || verdict[0]?.name === "reject") return false;
    const target = jumpTarget(verdict);
    if (target !== undefined && acceptsIn(target, rules, matches, asked)) return true;
  }
  return false;
}

function holds(conditions: readonly FoundExpression[], matches: readonly Expression[][]): boolean {
  if (conditions.length === 0) return true;
  const first = matches.find((match) => isSameRule(match, conditions.slice(0, match.length)));
  return first !== undefined && holds(conditions.slice(first.length), matches);
}

/** What is true of each packet from the subnet. */
function matchesOf(link: string | undefined, subnet: Prefix): Expression[][] {
  const matches = [ofFamily(subnet.bytes.length)];
  for (let bits = 1; bits <= subnet.bits; bits++) matches.push(from({ ...subnet, bits }));
  // With the end of the text, which a beginning of a name does not have.
  if (link !== undefined) matches.push([inputLink, equals(new TextEncoder().encode(`${link}\0`))]);
  return matches;
}
