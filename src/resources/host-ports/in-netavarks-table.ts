/** The containers that have a port of the host in the table `inet netavark`, by this program or by netavark. */
import type { PortClaim, PortClaimant } from "../../contract/host-ports.ts";
import { destinationAddress, ofFamily } from "../../ffi/netlink/nftables/packet-match.ts";
import { compares } from "../../ffi/netlink/nftables/compare.ts";
import { listRules } from "../../ffi/netlink/nftables/rule.ts";
import { getElement, listSets } from "../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { protocolNumbers } from "../../interop/iptables/rule.ts";
import { keyOf } from "../packets/port-mappings/nft-elements.ts";
import type { CommentedHolder } from "./holders.ts";
import { ownerInComment } from "../packets/shared/owner-comment.ts";
import { chain, portsChainFamily, portsMapsAmong, table } from "../netavark/shared/nft-names.ts";
import { toPort } from "../netavark/shared/nft-rules.ts";
import { areSameExpressions } from "../netavark/shared/nft-table.ts";

/** Ports of all addresses are elements of maps, or rules of netavark's; ports of one address are rules. */
export function holdersInNetavarksTable({ claims }: PortClaimant, socket: NetlinkSocket): CommentedHolder[] {
  const rules = listRules(socket, chain(""));
  if (rules.length === 0) return [];
  const maps = portsMapsAmong(listSets(socket, table));
  const holders: CommentedHolder[] = [];
  const hold = (claim: PortClaim, comment: string, isOfAll: boolean) => {
    const whose = comment === "" ? "another container" : ownerInComment(comment);
    holders.push({ claim, whose, comment, isOfAll });
  };
  for (const claim of claims) {
    const { family, protocol, port, at } = claim, size = family === 4 ? 4 : 16;
    for (const map of maps) {
      const element = getElement(socket, map, keyOf(undefined, protocolNumbers[protocol], port));
      if (element?.data?.length === size + 4) hold(claim, element.comment, true);
    }
    const isPort = toPort(protocol, port), isOfOne = [...ofFamily(size), destinationAddress(size, size)];
    for (const { chain: name, comment, expressions } of rules) {
      if (portsChainFamily(name) !== family) continue;
      const has = (wanted: typeof isPort, from = 0) =>
        areSameExpressions(wanted, expressions.slice(from, from + wanted.length));
      const address = expressions[isOfOne.length];
      if (has(isPort)) hold(claim, comment, true);
      else if (has(isOfOne) && has(isPort, isOfOne.length + 1) && (at === undefined || compares(address!, at))) {
        hold(claim, comment, false);
      }
    }
  }
  return holders;
}
