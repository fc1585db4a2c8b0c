/** Who asks for ports of the host, and who has them already. */
import type { Family, Protocol } from "../../../iptables/rule.ts";

/** A port that a container asks for. */
export interface Claim {
  family: Family;
  protocol: Protocol;
  port: number;
  /** The one address of the host that it is for. */
  at?: Uint8Array;
}

export type Way = "iptables" | "nftables" | "netavark";

export interface Claimant {
  network: string;
  containerId: string;
  way: Way;
  claims: Claim[];
}

/** Another container that has the port, at the address of the claim or at all; where the claim is for all, also at one. */
export interface Holder {
  claim: Claim;
  whose: string;
  isOfAll: boolean;
  /** Within iptables: it has come after the claimant. */
  isLater?: boolean;
}

export interface CommentedHolder extends Holder {
  /** It names the owner. */
  comment: string;
}
