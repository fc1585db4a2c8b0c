/** Who has a port of the host that a container asks for. */
import type { PortClaim } from "../../contract/host-ports.ts";

/** Another container that has the port, at the address of the claim or at all; where the claim is for all, also at one. */
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
