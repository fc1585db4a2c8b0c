import type { Owner } from "../../../contract/owner.ts";

/** The name of the kind in ledgers. */
export const KIND = "firewall";

export type FirewallBackend = "iptables" | "firewalld" | "nftables";

export interface FirewallSpec extends Owner {
  backend: FirewallBackend;
  /** Without prefix: `10.88.0.5`. */
  addresses: string[];
  /** For iptables: rules of this chain come before those of the containers. */
  adminChain: string;
  /** For firewalld. */
  zone: string;
  ingress?: Ingress;
}

export interface Ingress {
  /**
   * Whether other containers on the bridge reach its containers ("same-bridge") or not ("isolated"). Bridges with a
   * policy do not reach one another.
   */
  policy: "same-bridge" | "isolated";
  bridge: string;
}

/** The chains of iptables that an ADD made, for each family. */
export type MadeChains = Partial<Record<4 | 6, string[]>>;
