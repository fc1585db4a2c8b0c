/**
 * The rules of the reference plugin in the table filter, for each family that has addresses:
 *
 *     -A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD_CHAIN
 *     -A CNI-FORWARD_CHAIN -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
 *     -A CNI-FORWARD_CHAIN -d 10.88.0.5/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
 *     -A CNI-FORWARD_CHAIN -s 10.88.0.5/32 -j ACCEPT
 *
 * and with an ingress policy, before the others because it comes last:
 *
 *     -A FORWARD -m comment --comment "…" -j CNI-ISOLATION-STAGE-1
 *     -A CNI-ISOLATION-STAGE-1 -i br0 -o br0 -m comment --comment "…" -j DROP                       # isolated
 *     -A CNI-ISOLATION-STAGE-1 -i br0 ! -o br0 -m comment --comment "…" -j CNI-ISOLATION-STAGE-2
 *     -A CNI-ISOLATION-STAGE-1 -m comment --comment "…" -j RETURN
 *     -A CNI-ISOLATION-STAGE-2 -o br0 -m comment --comment "…" -j DROP
 *     -A CNI-ISOLATION-STAGE-2 -m comment --comment "…" -j RETURN
 *
 * What stands here for the bridge and for everybody stays, as the reference plugin leaves it. What stands for an address
 * says nowhere whose it is. On nf_tables its owner is kept beside the rule, where iptables does not look; in the older
 * tables, and for rules that were restored from a text, the ledgers tell.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { ENOENT } from "../../../ffi/errno.ts";
import type { Family, Rule } from "../../../iptables/rule.ts";
import { changeEveryTable, changeTable, readTable } from "../../../iptables/host-tables.ts";
import { isAmong, type TableChange } from "../../../iptables/table.ts";
import { ruleText } from "../../../iptables/text-rule.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { formatAddress, parseAddress } from "../../../net/address.ts";
import type { Host } from "../../../contract/host.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { FirewallSpec, Ingress, MadeChains } from "./firewall.ts";
import { ownerComment, ownerIn } from "../owner-comment.ts";
import { FORWARD_CHAIN, STAGE_1, STAGE_2 } from "./chain-names.ts";

const RULES = "CNI firewall plugin rules";
const toForward: Rule = { comment: RULES, target: { jump: FORWARD_CHAIN } };
const toAdmin = (chain: string): Rule => ({
  comment: "CNI firewall plugin admin overrides",
  target: { jump: chain },
});

function rulesOf(bytes: Uint8Array): Rule[] {
  const prefix = { bytes, bits: bytes.length * 8 };
  return [
    { destination: { prefix }, states: ["RELATED", "ESTABLISHED"], target: "ACCEPT" },
    { source: { prefix }, target: "ACCEPT" },
  ];
}

/** A rule, and whether it stands at the beginning or the end of its chain. */
interface Placed {
  chain: string;
  rule: Rule;
  first?: true;
}

/** In the order they are put in. */
function isolationOf({ policy, bridge }: Ingress): Placed[] {
  const anyPolicy = `${RULES} (ingressPolicy: same-bridge|isolated)`, comment = `${RULES} (ingressPolicy: ${policy})`;
  const into: Pick<Rule, "outLink"> = { outLink: { name: bridge } };
  const from: Pick<Rule, "inLink"> = { inLink: { name: bridge } };
  const elsewhere: Rule = {
    ...from,
    outLink: { name: bridge, not: true },
    comment,
    target: { jump: STAGE_2 },
  };
  return [
    { chain: "FORWARD", rule: { comment: anyPolicy, target: { jump: STAGE_1 } }, first: true },
    { chain: STAGE_1, rule: elsewhere, first: true },
    ...policy === "isolated"
      ? [{ chain: STAGE_1, rule: { ...from, ...into, comment, target: "DROP" }, first: true } satisfies Placed]
      : [],
    { chain: STAGE_1, rule: { comment: anyPolicy, target: "RETURN" } },
    { chain: STAGE_2, rule: { ...into, comment: anyPolicy, target: "DROP" }, first: true },
    { chain: STAGE_2, rule: { comment: anyPolicy, target: "RETURN" } },
  ];
}

/** What is there for everybody. */
function sharedOf({ backend, adminChain, ingress }: FirewallSpec): { chains: string[]; rules: Placed[] } {
  const forward = backend === "iptables", policy = ingress !== undefined;
  return {
    chains: [...forward ? [FORWARD_CHAIN, adminChain] : [], ...policy ? [STAGE_1, STAGE_2] : []],
    rules: [
      ...forward
        ? [
          { chain: "FORWARD", rule: toForward, first: true } satisfies Placed,
          { chain: FORWARD_CHAIN, rule: toAdmin(adminChain), first: true } satisfies Placed,
        ]
        : [],
      ...policy ? isolationOf(ingress) : [],
    ],
  };
}

/** Which rules there are for a container, wherever they stand. */
export function everyRule(spec: FirewallSpec): Rule[] {
  const rules = sharedOf(spec).rules.map(({ rule }) => rule);
  if (spec.backend === "iptables") { for (const address of addressesOf(spec, 4)) rules.push(...rulesOf(address)); }
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

function familiesOf(spec: FirewallSpec): Family[] {
  const families: Family[] = [];
  for (const family of [4, 6] as const) if (addressesOf(spec, family).length > 0) families.push(family);
  return families;
}

/** `made` is told the chains that were not there. */
export function apply(host: Host, spec: FirewallSpec, made: MadeChains): void {
  const owner = ownerComment(spec);
  let done = false;
  try {
    done = changeTable(host, "filter", familiesOf(spec), (table) => {
      const created = addShared(table, spec);
      if (created.length > 0) made[table.family] = created;
      else delete made[table.family];
      if (spec.backend !== "iptables") return;
      // A rule that does not say whose it is may be ours.
      const ours = table.freeRules(FORWARD_CHAIN, owner);
      for (const address of addressesOf(spec, table.family)) {
        for (const rule of rulesOf(address)) if (!isAmong(rule, ours)) table.append(FORWARD_CHAIN, rule, owner);
      }
    });
  } catch (error) {
    if (!isNetlinkError(error, ENOENT)) throw error;
    // What the tables need is made by the same transaction, so it is the extensions that are not there.
    const hint = 'the kernel lacks xt_comment or xt_conntrack; "backend": "nftables" does without';
    throw new CniError(INTERNAL, `firewall by iptables: ${error.message}`, hint, { cause: error });
  }
  if (!done) throw new CniError(INTERNAL, "firewall needs nf_tables, which this kernel does not have");
}

/** Answers the chains that were made. */
function addShared(table: TableChange, spec: FirewallSpec): string[] {
  const { chains, rules } = sharedOf(spec), owner = ownerComment(spec);
  const created: string[] = [];
  for (const chain of chains) {
    if (table.hasChain(chain)) continue;
    table.createChain(chain);
    created.push(chain);
  }
  for (const { chain, rule, first } of rules) {
    if (!created.includes(chain) && isAmong(rule, table.freeRules(chain, owner))) continue;
    if (first) table.insert(chain, rule);
    else table.append(chain, rule);
  }
  return created;
}

/** `claimed`: the addresses whose rules, where they do not say whose they are, belong to others. */
export function remove(
  socket: NetlinkSocket | undefined,
  spec: FirewallSpec,
  claimed: () => ReadonlySet<string>,
): void {
  const owner = ownerComment(spec);
  // Restated, the addresses may not be known.
  const families: readonly Family[] = spec.restated ? [4, 6] : familiesOf(spec);
  changeEveryTable(socket, "filter", families, spec.restated === true, (table) => {
    const addresses = addressesOf(spec, table.family);
    for (const found of table.freeRules(FORWARD_CHAIN, owner)) {
      if (found.owner === owner) {
        table.delete(found);
        continue;
      }
      const address = addresses.find((each) => rulesOf(each).some((rule) => found.is(rule)));
      if (address !== undefined && !claimed().has(formatAddress(address))) table.delete(found);
    }
  });
}

/** Takes away the chains that an ADD made which failed, where nothing but them and their jumps is left. */
export function removeChains(host: Host, spec: FirewallSpec, made: MadeChains): void {
  changeTable(host, "filter", familiesOf(spec), (table) => {
    const chains = (made[table.family] ?? []).filter((chain) => table.hasChain(chain)), { rules } = sharedOf(spec);
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

/** One line for each rule that is missing. */
export function verify(host: Host, spec: FirewallSpec): string[] {
  const owner = ownerComment(spec), differences: string[] = [];
  for (const family of familiesOf(spec)) {
    const table = readTable(host, "filter", family), tool = family === 4 ? "iptables" : "ip6tables";
    const missing = (chain: string, rule: Rule) =>
      differences.push(`expected ${tool} rule -A ${chain} ${ruleText(rule)} not found`);
    for (const { chain, rule } of sharedOf(spec).rules) {
      if (!isAmong(rule, table.freeRules(chain, owner))) missing(chain, rule);
    }
    if (spec.backend !== "iptables") continue;
    const ours = table.freeRules(FORWARD_CHAIN, owner);
    for (const address of addressesOf(spec, family)) {
      for (const rule of rulesOf(address)) if (!isAmong(rule, ours)) missing(FORWARD_CHAIN, rule);
    }
  }
  return differences;
}

/** For GC: the rules of the network's attachments that are not valid, as far as they say whose they are. */
export function sweep(socket: NetlinkSocket, network: string, isValid: (owner: Owner) => boolean): void {
  const { changeTable } = require(
    "../../../iptables/nft-table.ts",
  ) as typeof import("../../../iptables/nft-table.ts");
  changeTable(socket, "filter", [4, 6], (table) => {
    for (const found of table.rules(FORWARD_CHAIN)) {
      const owner = found.owner === undefined ? undefined : ownerIn(found.owner, network);
      if (owner !== undefined && !isValid(owner)) table.delete(found);
    }
  });
}
