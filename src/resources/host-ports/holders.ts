/** Who has a port of the host that a container asks for. */
import type { PortClaim } from "../../contract/host-ports.ts";

/** Another container that has the port at an address of the claim. One of the two may have it at all addresses. */
export interface PortHolder {
  claim: PortClaim;
  whose: string;
  isOfAll: boolean;
  /** Within iptables: it has come after the claimant. */
  isLater?: boolean;
}

export interface CommentedHolder extends PortHolder {
  /** It names the owner. */
  comment: string;
}
