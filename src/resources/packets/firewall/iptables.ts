/**
 * The rules of the reference plugin in the table filter, for each family in which the container has addresses:
 *
 *     -A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD_CHAIN
 *     -A CNI-FORWARD_CHAIN -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
 *     -A CNI-FORWARD_CHAIN -d 10.88.0.5/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
 *     -A CNI-FORWARD_CHAIN -s 10.88.0.5/32 -j ACCEPT
 *
 * and with an ingress policy, in both families, before the others because it comes last:
 *
 *     -A FORWARD -m comment --comment "…" -j CNI-ISOLATION-STAGE-1
 *     -A CNI-ISOLATION-STAGE-1 -i br0 -o br0 -m comment --comment "…" -j DROP                       # isolated
 *     -A CNI-ISOLATION-STAGE-1 -i br0 ! -o br0 -m comment --comment "…" -j CNI-ISOLATION-STAGE-2
 *     -A CNI-ISOLATION-STAGE-1 -m comment --comment "…" -j RETURN
 *     -A CNI-ISOLATION-STAGE-2 -o br0 -m comment --comment "…" -j DROP
 *     -A CNI-ISOLATION-STAGE-2 -m comment --comment "…" -j RETURN
 *
 * A container sends packets of a family in which it has no addresses, too. Links that another backend guards are not in
 * these chains, so the link is guarded in our own table as well (`guard` in nftables.ts).
 *
 * Rules for a bridge, and those that all containers share, stay as the reference plugin leaves them; rules for a link that
 * is the container's own go with it. The text of a rule for
 * an address does not name its owner. In nf_tables the owner is stored with the rule, where iptables does not show it; in
 * the older tables, and for rules that were restored from a file, the ledgers tell.
 */
import { FAMILIES, type Family, type IptablesRule, toolOf } from "../../../interop/iptables/rule.ts";
import { changeEveryTable, changeTable, readTable } from "../../../interop/iptables/host-tables.ts";
import { isAmong, type TableChange } from "../../../interop/iptables/table.ts";
import { ruleText } from "../../../interop/iptables/text-rule.ts";
import { isLegacyHost } from "../../../interop/iptables/which-iptables.ts";
import { readSysctl } from "../../../ffi/sysctl.ts";
import { warn } from "../../../process/warn.ts";
import { attemptAll } from "../../../contract/failures.ts";
import { formatAddress, parseAddress } from "../../../net/address.ts";
import type { Host } from "../../../contract/host.ts";
import { type Backend, obstacles } from "../shared/backend.ts";
import { addShared, explainingEnoent, type SharedRule } from "../shared/iptables-chains.ts";
import { netfilterOf } from "../shared/netfilter-socket.ts";
import { isLost, ownerComment } from "../shared/owner-comment.ts";
import {
  claimedAddresses,
  type FirewallSpec,
  FORWARD_CHAIN,
  type Ingress,
  type MadeChains,
  STAGE_1,
  STAGE_2,
} from "./spec.ts";

type Rules = "all" | "isolation";

const guard = () => (require("./nftables.ts") as typeof import("./nftables.ts")).guard;

const RULES = "CNI firewall plugin rules";
const toForward: IptablesRule = { comment: RULES, target: { jump: FORWARD_CHAIN } };
const toAdmin = (chain: string): IptablesRule => ({
  comment: "CNI firewall plugin admin overrides",
  target: { jump: chain },
});

function rulesOf(bytes: Uint8Array): IptablesRule[] {
  const prefix = { bytes, bits: bytes.length * 8 };
  return [
    { destination: { prefix }, states: ["RELATED", "ESTABLISHED"], target: "ACCEPT" },
    { source: { prefix }, target: "ACCEPT" },
  ];
}

/** In the order they are written. */
function isolationOf({ policy, bridge }: Pick<Ingress, "policy" | "bridge">, owner?: string): SharedRule[] {
  const anyPolicy = `${RULES} (ingressPolicy: same-bridge|isolated)`, comment = `${RULES} (ingressPolicy: ${policy})`;
  const into: Pick<IptablesRule, "outLink"> = { outLink: { name: bridge } };
  const from: Pick<IptablesRule, "inLink"> = { inLink: { name: bridge } };
  const elsewhere: IptablesRule = {
    ...from,
    outLink: { name: bridge, not: true },
    comment,
    target: { jump: STAGE_2 },
  };
  const within: IptablesRule = { ...from, ...into, comment, target: "DROP" };
  const inFirstStage = { chain: STAGE_1, first: true, owner } as const;
  return [
    { chain: "FORWARD", rule: { comment: anyPolicy, target: { jump: STAGE_1 } }, first: true },
    { ...inFirstStage, rule: elsewhere },
    ...policy === "isolated" ? [{ ...inFirstStage, rule: within }] : [],
    { chain: STAGE_1, rule: { comment: anyPolicy, target: "RETURN" } },
    { chain: STAGE_2, rule: { ...into, comment: anyPolicy, target: "DROP" }, first: true, owner },
    { chain: STAGE_2, rule: { comment: anyPolicy, target: "RETURN" } },
  ];
}

/** What containers share, in all families or in one. */
function sharedOf(spec: FirewallSpec, part: Rules, family?: Family): { chains: string[]; rules: SharedRule[] } {
  const { adminChain, ingress } = spec, chains: string[] = [], rules: SharedRule[] = [];
  if (part === "all" && (family === undefined || addressesOf(spec, family).length > 0)) {
    chains.push(FORWARD_CHAIN, adminChain);
    rules.push(
      { chain: "FORWARD", rule: toForward, first: true },
      { chain: FORWARD_CHAIN, rule: toAdmin(adminChain), first: true },
    );
  }
  if (ingress !== undefined) {
    chains.push(STAGE_1, STAGE_2);
    rules.push(...isolationOf(ingress, ingress.isOwn && ownerComment(spec)));
  }
  return { chains, rules };
}

/** All rules for a container, in whatever chain. */
function everyRule(spec: FirewallSpec, part: Rules): IptablesRule[] {
  const rules = sharedOf(spec, part).rules.map(({ rule }) => rule);
  if (part === "all") { for (const address of addressesOf(spec, 4)) rules.push(...rulesOf(address)); }
  return rules;
}

function addressesOf({ addresses }: FirewallSpec, family: Family): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (const text of addresses) {
    const bytes = parseAddress(text);
    if (bytes?.length === (family === 4 ? 4 : 16)) found.push(bytes);
  }
  return found;
}

/** The families of its addresses. With a policy, also each family that the host can forward and has tools for. */
function familiesOf(spec: FirewallSpec): Family[] {
  const isKeptInAll = spec.ingress?.isKnownToAll ?? false;
  return FAMILIES.filter((family) => addressesOf(spec, family).length > 0 || isKeptInAll && isUsable(family));
}

/** A kernel without IPv6 has no such key. */
function isForwardable(family: Family): boolean {
  return family === 4 || readSysctl("net/ipv6/conf/all/forwarding") !== undefined;
}

function isUsable(family: Family): boolean {
  if (!isForwardable(family)) return false;
  if (!isLegacyHost()) return true;
  const { whyNoTools } = require(
    "../../../interop/iptables/legacy-table.ts",
  ) as typeof import("../../../interop/iptables/legacy-table.ts");
  return whyNoTools(family) === undefined;
}

/** Removes the chains that a failed ADD made, if nothing but shared rules is in them. */
export function removeChains(host: Host, spec: FirewallSpec, made: MadeChains): void {
  changeTable(host, "filter", FAMILIES.filter((family) => made[family] !== undefined), (table) => {
    const chains = (made[table.family] ?? []).filter((chain) => table.hasChain(chain));
    const { rules } = sharedOf(spec, spec.backend === "iptables" ? "all" : "isolation");
    const shared = rules.filter(({ chain }) => chain === "FORWARD" || chains.includes(chain));
    const isShared = (chain: string) =>
      table.rules(chain).every((found) => shared.some((one) => one.chain === chain && found.is(one.rule)));
    if (!chains.every(isShared)) return;
    for (const found of table.rules("FORWARD")) {
      if (found.leadsTo !== undefined && chains.includes(found.leadsTo)) table.delete(found);
    }
    for (const chain of chains) table.deleteChain(chain);
  });
}

/** Removes the rules for a link that goes, in either form; returns whether there were any. */
export function removeIsolation(bridge: string, host: Host, isDryRun: boolean): boolean {
  const rules = (["isolated", "same-bridge"] as const).flatMap((policy) => isolationOf({ policy, bridge }))
    .filter(({ rule: { inLink, outLink } }) => inLink !== undefined || outLink !== undefined);
  let areThere = false;
  changeEveryTable(netfilterOf(host), "filter", FAMILIES, true, (table) => {
    for (const chain of [STAGE_1, STAGE_2]) {
      for (const found of table.rules(chain)) {
        if (!rules.some((one) => one.chain === chain && found.is(one.rule))) continue;
        areThere = true;
        if (!isDryRun) table.delete(found);
      }
    }
  });
  return areThere;
}

function addOwn(table: TableChange, spec: FirewallSpec): void {
  const owner = ownerComment(spec);
  // A rule without an owner may be ours.
  const ours = table.freeRules(FORWARD_CHAIN, owner);
  for (const address of addressesOf(spec, table.family)) {
    for (const rule of rulesOf(address)) if (!isAmong(rule, ours)) table.append(FORWARD_CHAIN, rule, owner);
  }
}

/** Rules without an owner are removed if they are for one of its addresses, and nobody else claims that. */
function removeOwn(table: TableChange, spec: FirewallSpec, isClaimed: (address: string) => boolean): void {
  const owner = ownerComment(spec), addresses = addressesOf(spec, table.family);
  for (const found of table.freeRules(FORWARD_CHAIN, owner)) {
    if (found.owner === owner) {
      table.delete(found);
      continue;
    }
    const address = addresses.find((each) => rulesOf(each).some((rule) => found.is(rule)));
    if (address !== undefined && !isClaimed(formatAddress(address))) table.delete(found);
  }
}

function verifyFamily(spec: FirewallSpec, host: Host, family: Family, part: Rules): string[] {
  const owner = ownerComment(spec), differences: string[] = [];
  const table = readTable(host, "filter", family);
  const missing = (chain: string, rule: IptablesRule) =>
    differences.push(`expected ${toolOf(family)} rule -A ${chain} ${ruleText(rule)} not found`);
  for (const { chain, rule } of sharedOf(spec, part, family).rules) {
    if (!isAmong(rule, table.freeRules(chain, owner))) missing(chain, rule);
  }
  if (part === "isolation") return differences;
  const ours = table.freeRules(FORWARD_CHAIN, owner);
  for (const address of addressesOf(spec, family)) {
    for (const rule of rulesOf(address)) if (!isAmong(rule, ours)) missing(FORWARD_CHAIN, rule);
  }
  return differences;
}

function writing(part: Rules): Required<Pick<Backend<FirewallSpec, MadeChains>, "apply" | "verify" | "obstacle">> {
  return {
    apply(spec, host, made = {}) {
      const owner = ownerComment(spec);
      if (spec.ingress?.isKnownToAll) applyGuard(spec, host);
      const change = () =>
        changeTable(host, "filter", familiesOf(spec), (table) => {
          const { chains, rules } = sharedOf(spec, part, table.family);
          const created = addShared(table, chains, rules, (chain) => table.freeRules(chain, owner));
          if (created.length > 0) made[table.family] = created;
          else delete made[table.family];
          if (part === "all") addOwn(table, spec);
        });
      return explainingEnoent("firewall by iptables", "xt_comment or xt_conntrack", '"backend": "nftables"', change);
    },
    verify(spec, host) {
      const differences = familiesOf(spec).flatMap((family) => verifyFamily(spec, host, family, part));
      return spec.ingress?.isKnownToAll ? [...differences, ...guard().verify(spec, host)] : differences;
    },
    obstacle(spec, host) {
      const rules = everyRule(spec, part);
      return rules.length === 0 ? undefined : obstacles().obstacleToIptables(host, rules);
    },
  };
}

function applyGuard(spec: FirewallSpec, host: Host): void {
  if (guard().apply(spec, host) || familiesOf(spec).includes(6)) return;
  if (isForwardable(6)) warn(`"ingressPolicy" is not kept for IPv6: there is neither ip6tables nor nf_tables`);
}

/** What an ingress policy needs: firewalld has no part in that. */
export const isolation = {
  ...writing("isolation"),
  /** With `isRestated`, the backend nftables removes its part. */
  remove(spec: FirewallSpec, host: Host, isRestated: boolean): void {
    const { ingress } = spec;
    attemptAll([
      ...ingress?.isKnownToAll && !isRestated ? [() => guard().remove(spec, host, false)] : [],
      ...ingress?.isOwn ? [() => void removeIsolation(ingress.bridge, host, false)] : [],
    ]);
  },
};

export const backend: Backend<FirewallSpec, MadeChains> = {
  ...writing("all"),
  inSteps: true,
  remove(spec, host, isRestated) {
    const isClaimed = claimedAddresses(spec, host), socket = netfilterOf(host);
    const families = isRestated ? FAMILIES : FAMILIES.filter((family) => addressesOf(spec, family).length > 0);
    attemptAll([
      () => changeEveryTable(socket, "filter", families, isRestated, (table) => removeOwn(table, spec, isClaimed)),
      () => isolation.remove(spec, host, isRestated),
    ]);
  },
  /** Only in nf_tables do rules say whose they are. */
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    const { changeTable } = require(
      "../../../interop/iptables/nft-table.ts",
    ) as typeof import("../../../interop/iptables/nft-table.ts");
    changeTable(socket, "filter", FAMILIES, (table) => {
      for (const chain of [FORWARD_CHAIN, STAGE_1, STAGE_2]) {
        for (const found of table.rules(chain)) {
          if (found.owner !== undefined && isLost(found.owner, network, isValid)) table.delete(found);
        }
      }
    });
  },
};
