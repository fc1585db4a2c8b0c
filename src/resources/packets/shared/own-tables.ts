/**
 * Every nftables table of ours in the kernel, by the kind of resource that writes it, and what a table consists of. Each
 * is made with its first element and deleted with its last. Rules that other programs must see stand in iptables' own tables instead (src/interop/iptables).
 */
import { type Chain, type Hook, nameOfTable, type Table } from "../../../ffi/netlink/nftables/table.ts";
import type { FoundExpression } from "../../../ffi/netlink/nftables/expression.ts";
import type { Element, KeyType, NftSet } from "../../../ffi/netlink/nftables/set.ts";
import { NFPROTO_BRIDGE, NFPROTO_INET, NFPROTO_IPV4, NFPROTO_NETDEV } from "../../../ffi/netlink/uapi/nf-tables.ts";
import type { OwnRules } from "./own-rules.ts";

export interface OwnTable extends Table {
  /** Which plugins write it, and when. */
  madeBy: string;
  /** nft(8) shows it at the table. */
  comment: string;
}

export const ownTables = {
  "masquerade": {
    family: NFPROTO_INET,
    name: "patchbay_masquerade",
    madeBy: "bridge and ptp, for ipMasq with the backend nftables",
    comment: "Patchbay: container addresses to masquerade, a map for each subnet",
  },
  "port-mappings": {
    family: NFPROTO_INET,
    name: "patchbay_portmap",
    madeBy: "portmap, with the backend nftables",
    comment: "Patchbay: ports at addresses of the host that lead to containers",
  },
  "localhost-access": {
    family: NFPROTO_IPV4,
    name: "patchbay_localhost",
    madeBy: "portmap, and the networks of podman, for ports that 127.0.0.1 of the host reaches",
    comment: "Patchbay: links over which 127.0.0.1 of the host reaches containers, and nobody reaches it",
  },
  "firewall": {
    family: NFPROTO_INET,
    name: "patchbay_firewall",
    madeBy: "firewall, with the backend nftables, and with any other for an ingressPolicy",
    comment: "Patchbay: container addresses that may be forwarded, bridges that are kept apart",
  },
  "port-isolation": {
    family: NFPROTO_NETDEV,
    name: "patchbay_isolation",
    madeBy: "bridge, for portIsolation",
    comment: "Patchbay: links whose containers do not reach each other through the host",
  },
  "mac-spoof-check": {
    family: NFPROTO_BRIDGE,
    name: "patchbay_macspoofchk",
    madeBy: "bridge, for macspoofchk",
    comment: "Patchbay: containers whose source MAC is checked",
  },
  "host-copy-dropped": {
    family: NFPROTO_INET,
    name: "patchbay_ovs",
    madeBy: "ovs",
    comment: "Patchbay: links whose packets Open vSwitch takes, and not the host",
  },
  "podman-bridge": {
    family: NFPROTO_INET,
    name: "patchbay_internal",
    madeBy: "the internal networks of podman, with every firewall driver",
    comment: "Patchbay: bridges from and to which nothing is forwarded",
  },
} as const satisfies Record<string, OwnTable>;

/** `inet patchbay_firewall`, and the others. */
export function ownTableNames(): string[] {
  return Object.values(ownTables).map(nameOfTable);
}

export interface TableFacts {
  table: OwnTable;
  /** The chains that exist as long as the table, with the rules that belong to no group. */
  chains: readonly OwnChain[];
  /** The sets and maps that exist as long as the table. */
  sets?: readonly OwnSet[];
  /** The only counter of a table without groups: the table is removed with its last element. */
  counter?: string;
  groups?: GroupFacts;
}

export interface OwnChain extends Partial<OwnRules> {
  chain: Chain;
  hook?: Hook;
}

export interface OwnSet {
  set: NftSet;
  key: KeyType;
  holds: "keys" | "counters" | KeyType;
  intervals?: true;
}

/** A counter with its maps and rules. */
export interface Group {
  counter: string;
  maps: readonly OwnSet[];
  rules: OwnRules;
}

/** What to remove with a counter's last element. Then nothing is known of the group but the counter's name. */
interface GroupFacts {
  maps?(counter: string): string[];
  /** The chains with the groups' rules, and the map that such a rule is for. */
  ruleChains?: readonly Chain[];
  mapOfRule?(rule: readonly FoundExpression[]): string | undefined;
  /** A chain of the group's own. The kernel may have removed it with the link that it hooks into. */
  chain?(counter: string): Chain;
  /** Elements in sets that stay. `refers`: the element refers to the counter itself. */
  elements?(counter: string): (GroupPlace & { refers?: true })[];
}

/** Where an element is. */
export interface GroupPlace {
  set: NftSet;
  key: Uint8Array;
}

/** An element, and where it is. */
export type FoundElement = Element & GroupPlace;
