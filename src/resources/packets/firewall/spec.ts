/** What forwarding is for a container, and the names that it has in ledgers and in iptables. */
import type { Owner } from "../../../contract/owner.ts";
import type { Host } from "../../../contract/host.ts";

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
  /**
   * The host's link by which the container's packets come and go: a bridge, a link upon one, or one of its own.
   */
  bridge: string;
  /** It is the container's alone: what stands for it goes with the container. */
  isOwn?: true;
  /** The policy is kept in both families, and against every backend's links. The reference plugin's is not. */
  isKnownToAll?: true;
}

/** The chains of iptables that an ADD made, for each family. */
export type MadeChains = Partial<Record<4 | 6, string[]>>;

/** The names of the reference plugin's chains in the table filter of iptables; that of one more is configured. */
export const FORWARD_CHAIN = "CNI-FORWARD";
export const STAGE_1 = "CNI-ISOLATION-STAGE-1";
export const STAGE_2 = "CNI-ISOLATION-STAGE-2";

/** The shared chains of iptables that an attachment may have made, though no policy is known. */
export function sharedFirewallChains({ backend, adminChain }: FirewallSpec): string[] {
  if (backend === "nftables") return [];
  return [...backend === "iptables" ? [FORWARD_CHAIN, adminChain] : [], STAGE_1, STAGE_2];
}

/**
 * Whether another attachment's ledger holds the address: then what stands for it belongs to that one. The ledgers are
 * read when it is first asked.
 */
export function claimedAddresses(spec: FirewallSpec, host: Host): (address: string) => boolean {
  let claimed: Set<string> | undefined;
  return (address) => {
    if (claimed === undefined) {
      claimed = new Set();
      for (const other of host.claimedByOthers(KIND, spec) as FirewallSpec[]) {
        for (const each of other.addresses) claimed.add(each);
      }
    }
    return claimed.has(address);
  };
}
