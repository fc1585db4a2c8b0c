/**
 * A rule of iptables(8) as data: what it matches and what happens to the packet. nft-rule.ts encodes it for nf_tables and
 * text-rule.ts writes it as text, in forms that iptables lists, checks and deletes. Pure.
 *
 * Matches are written in the order of the fields here: iptables compares rules match by match, and the reference plugins
 * use this order.
 */
import type { Prefix } from "../../net/address.ts";

export type Family = 4 | 6;
export const FAMILIES: readonly Family[] = [4, 6];

export function toolOf(family: Family): "iptables" | "ip6tables" {
  return family === 4 ? "iptables" : "ip6tables";
}

export interface IptablesRule {
  source?: AddressMatch;
  destination?: AddressMatch;
  inLink?: LinkMatch;
  outLink?: LinkMatch;
  protocol?: Protocol;
  comment?: string;
  /** `-m conntrack --ctstate` */
  states?: readonly ConnectionState[];
  /** `-m addrtype --dst-type LOCAL` */
  toLocal?: true;
  /** `-m multiport --dports`: at most 15 ports. Needs a protocol. */
  destinationPorts?: readonly number[];
  /** `--dport`. Needs a protocol. */
  destinationPort?: number;
  /** `-m mark --mark` */
  mark?: Mark & { not?: true };
  target: Target;
}

export interface AddressMatch {
  prefix: Prefix;
  not?: true;
}

/** A name that ends in `+` means every link whose name starts with the rest. */
export interface LinkMatch {
  name: string;
  not?: true;
}

export interface Mark {
  value: number;
  mask: number;
}

export const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;
export type Protocol = keyof typeof protocolNumbers;

/** In the order iptables prints them, with the bits of linux/netfilter/xt_conntrack.h. */
export const stateBits = { INVALID: 1, NEW: 8, RELATED: 4, ESTABLISHED: 2 } as const;
type ConnectionState = keyof typeof stateBits;

export type Target =
  | "ACCEPT"
  | "DROP"
  | "RETURN"
  | "MASQUERADE"
  | { jump: string }
  /** `-j MARK --set-xmark` */
  | { setMark: Mark }
  /** `-j DNAT --to-destination` */
  | { dnat: { address: Uint8Array; port: number } };

/** The chains with a hook, by table: hook (linux/netfilter.h) and priority (linux/netfilter_ipv4.h). */
export const builtInChains: Record<TableName, Record<string, { hook: number; priority: number }>> = {
  filter: {
    INPUT: { hook: 1, priority: 0 },
    FORWARD: { hook: 2, priority: 0 },
    OUTPUT: { hook: 3, priority: 0 },
  },
  nat: {
    PREROUTING: { hook: 0, priority: -100 },
    INPUT: { hook: 1, priority: 100 },
    OUTPUT: { hook: 3, priority: -100 },
    POSTROUTING: { hook: 4, priority: 100 },
  },
};

export type TableName = "filter" | "nat";
