/**
 * The iptables backend where iptables is the one that writes nf_tables: the same rules as bytes for the kernel, in the
 * encoding of iptables-nft 1.8.9, so that iptables lists, checks and deletes them, and one transaction for all of them.
 *
 * Nothing here takes longer when there are more containers, other than what the kernel does with a longer POSTROUTING:
 * a jump is found without a look at its neighbours, because a transaction numbers its rules one after another, and the
 * jumps are written right behind the rules of the chain they go to.
 */
import { from, multicast4, multicast6, notTo, to } from "../../ffi/netlink/nftables/address-match.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { addBaseChain, type Chain, chainUse, createChain, delChain } from "../../ffi/netlink/nftables/chain.ts";
import { comparedValue } from "../../ffi/netlink/nftables/expr/cmp.ts";
import { counter } from "../../ffi/netlink/nftables/expr/counter.ts";
import { type Expression, type FoundExpression, isSameRule } from "../../ffi/netlink/nftables/expr/expression.ts";
import { accept, jump, jumpTarget } from "../../ffi/netlink/nftables/expr/immediate.ts";
import { commentMatch, matchedComment } from "../../ffi/netlink/nftables/expr/match.ts";
import { masqueradeTarget } from "../../ffi/netlink/nftables/expr/target.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import {
  addRule,
  delRule,
  flushChain,
  type FoundRule,
  getRule,
  insertRule,
  listRules,
} from "../../ffi/netlink/nftables/rule.ts";
import { addTable } from "../../ffi/netlink/nftables/table.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { EBUSY, EEXIST, ENOENT } from "../../ffi/errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_POST_ROUTING, NFPROTO_IPV4, NFPROTO_IPV6 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { formatAddress, networkOf, type Prefix } from "../../net/address.ts";
import type { MasqueradeSpec } from "../masquerade.ts";
import { chainName, type Named, namedIn, ofFamily, ruleComment } from "./iptables-names.ts";

/** What one family's `nat` table is to hold for a container. */
interface Plan {
  postrouting: Chain;
  chain: Chain;
  accepts: Expression[][];
  masquerade: Expression[];
  jumps: { address: Prefix; rule: Expression[] }[];
}

const compat = { compat: true };
const families = [4, 16] as const;

function natOf(size: 4 | 16): { postrouting: Chain; chainNamed(name: string): Chain } {
  const table = { family: size === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name: "nat" };
  return { postrouting: { table, name: "POSTROUTING" }, chainNamed: (name) => ({ table, name }) };
}

/** One for each family that has addresses. */
function plansOf(spec: MasqueradeSpec): Plan[] {
  const name = chainName(spec), comment = commentMatch(ruleComment(spec));
  const plans: Plan[] = [];
  for (const size of families) {
    const { addresses, subnets } = ofFamily(spec.addresses, size);
    if (addresses.length === 0) continue;
    const { postrouting, chainNamed } = natOf(size);
    plans.push({
      postrouting,
      chain: chainNamed(name),
      accepts: subnets.map((subnet) => [...to(subnet), comment, counter, accept]),
      masquerade: [...notTo(size === 4 ? multicast4 : multicast6), comment, counter, masqueradeTarget(size)],
      jumps: addresses.map((address) => ({
        address,
        rule: [...from(address.bytes), comment, counter, jump(name)],
      })),
    });
  }
  return plans;
}

/** Not flatMap, whose first call alone costs a process 0.1 ms. */
function together(plans: Plan[], messagesOf: (plan: Plan) => NftMessage[]): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const plan of plans) messages.push(...messagesOf(plan));
  return messages;
}

/** Answers false when the kernel has no nf_tables. */
export function apply(socket: NetlinkSocket, spec: MasqueradeSpec): boolean {
  const plans = plansOf(spec);
  try {
    return commitUnchanged(socket, () => together(plans, (plan) => planFresh(socket, plan)));
  } catch (error) {
    if (isNetlinkError(error, ENOENT)) throw lacking(error);
    if (!isNetlinkError(error, EEXIST)) throw error;
    return commitUnchanged(socket, () => together(plans, (plan) => planMissing(socket, plan)));
  }
}

/** What the tables need is made by the same transaction, so it is the extensions that are not there. */
function lacking(cause: Error): CniError {
  const hint = 'the kernel lacks xt_comment or xt_MASQUERADE; "ipMasqBackend": "nftables" does without';
  return new CniError(INTERNAL, `ipMasq by iptables: ${cause.message}`, hint, { cause });
}

/** Counts on there being no chain, as nearly always: then nothing jumps to it, and nothing has to be compared. */
function planFresh(socket: NetlinkSocket, { postrouting, chain, accepts, masquerade, jumps }: Plan): NftMessage[] {
  return [
    ...chainUse(socket, postrouting) === undefined ? frameOf(postrouting) : [],
    createChain(chain),
    ...[...accepts, masquerade].map((rule) => addRule(chain, rule, compat)),
    ...jumps.map(({ rule }) => addRule(postrouting, rule, compat)),
  ];
}

/** Adds what is not there: to a chain that was left over, or that the container's other interface has. */
function planMissing(socket: NetlinkSocket, plan: Plan): NftMessage[] {
  const { postrouting, chain, accepts, masquerade, jumps } = plan;
  if (chainUse(socket, chain) === undefined) return planFresh(socket, plan);
  const present = listRules(socket, chain), presentJumps = jumpsTo(socket, postrouting, chain);
  const missingIn = (rules: FoundRule[]) => (rule: Expression[]) =>
    !rules.some(({ expressions }) => isSameRule(rule, expressions));
  return [
    // Before the rule that masquerades.
    ...accepts.filter(missingIn(present)).map((rule) => insertRule(chain, rule, compat)),
    ...[masquerade].filter(missingIn(present)).map((rule) => addRule(chain, rule, compat)),
    ...jumps.map(({ rule }) => rule).filter(missingIn(presentJumps)).map((rule) =>
      addRule(postrouting, rule, compat)
    ),
  ];
}

/** As iptables makes them on its first use. */
function frameOf(postrouting: Chain): NftMessage[] {
  return [
    addTable(postrouting.table),
    addBaseChain(postrouting, { type: "nat", hook: NF_INET_POST_ROUTING, priority: 100 }),
  ];
}

function jumpsTo(socket: NetlinkSocket, postrouting: Chain, chain: Chain): FoundRule[] {
  return listRules(socket, postrouting).filter(({ expressions }) => jumpTarget(expressions) === chain.name);
}

/** All jumps to the chain, most often without listing POSTROUTING. */
function findJumps(socket: NetlinkSocket, postrouting: Chain, chain: Chain, use: number): FoundRule[] {
  const rules = listRules(socket, chain);
  const count = use - rules.length, last = rules[rules.length - 1]?.handle;
  if (count === 0) return [];
  const guessed: FoundRule[] = [];
  for (let next = 1n; last !== undefined && next <= count; next++) {
    const found = getRule(socket, postrouting, last + next);
    if (found === undefined || jumpTarget(found.expressions) !== chain.name) break;
    guessed.push(found);
  }
  return guessed.length === count ? guessed : jumpsTo(socket, postrouting, chain);
}

/**
 * With no addresses, everything of the container in this network goes; else what is for these addresses. Answers
 * whether there was anything.
 */
export function remove(socket: NetlinkSocket, spec: Named & { addresses: readonly string[] }): boolean {
  const name = chainName(spec);
  let found = false;
  for (const size of families) {
    const { addresses } = ofFamily(spec.addresses, size);
    if (addresses.length === 0 && spec.addresses.length > 0) continue;
    const { postrouting, chainNamed } = natOf(size);
    if (removeChain(socket, postrouting, chainNamed(name), spec.addresses.length > 0 ? addresses : undefined)) {
      found = true;
    }
  }
  return found;
}

function removeChain(socket: NetlinkSocket, postrouting: Chain, chain: Chain, addresses?: Prefix[]): boolean {
  let found = false;
  const plan = (withChain: boolean) => () => {
    const use = chainUse(socket, chain);
    if (use === undefined) return [];
    found = true;
    const jumps = findJumps(socket, postrouting, chain, use);
    const ours = jumps.filter(({ expressions }) => addresses === undefined || isFrom(addresses, expressions));
    return [
      ...ours.map(({ handle }) => delRule(postrouting, handle)),
      ...withChain && ours.length === jumps.length ? [flushChain(chain), delChain(chain)] : [],
    ];
  };
  try {
    commitUnchanged(socket, plan(true));
  } catch (error) {
    // Somebody's own rule jumps to the chain from elsewhere: it is theirs to remove, and then the chain is empty.
    if (!isNetlinkError(error, EBUSY)) throw error;
    commitUnchanged(socket, plan(false));
  }
  return found;
}

/** Before 0.8.0 the reference plugins wrote the whole subnet as the source. */
function isFrom(addresses: Prefix[], rule: FoundExpression[]): boolean {
  const source = comparedValue(rule);
  return source !== undefined &&
    addresses.some((address) => startsWith(address.bytes, source) || startsWith(networkOf(address), source));
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => byte === bytes[index]);
}

/** One line for each rule that is missing. */
export function verify(socket: NetlinkSocket, spec: MasqueradeSpec): string[] {
  return plansOf(spec).flatMap(({ postrouting, chain, accepts, masquerade, jumps }) => {
    const tool = chain.table.family === NFPROTO_IPV4 ? "iptables" : "ip6tables";
    const present = listRules(socket, chain);
    const presentJumps = findJumps(socket, postrouting, chain, chainUse(socket, chain) ?? 0);
    const isIn = (rules: FoundRule[], rule: Expression[]) =>
      rules.some((found) => isSameRule(rule, found.expressions));
    return [
      ...accepts.every((rule) => isIn(present, rule)) && isIn(present, masquerade)
        ? []
        : [`a rule of the ${tool} nat chain ${chain.name} is missing or altered`],
      ...jumps.filter(({ rule }) => !isIn(presentJumps, rule)).map(({ address }) =>
        `the jump from POSTROUTING to the ${tool} nat chain ${chain.name} for ${
          formatAddress(address.bytes)
        } is missing`
      ),
    ];
  });
}

/** For GC: every container of the network that has rules. */
export function owners(socket: NetlinkSocket, network: string): string[] {
  const found = new Set<string>();
  for (const size of families) {
    // Without a chain all rules of the table come: one that lost its jumps is found by what is in it.
    for (const { chain, expressions } of listRules(socket, natOf(size).chainNamed(""))) {
      const named = namedIn(matchedComment(expressions), jumpTarget(expressions) ?? chain) ??
        namedIn(matchedComment(expressions), chain);
      if (named?.network === network) found.add(named.containerId);
    }
  }
  return [...found];
}
