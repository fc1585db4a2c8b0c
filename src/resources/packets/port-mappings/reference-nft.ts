/**
 * What the reference plugin's nftables backend leaves, taken over: rules in `table ip cni_hostport` and
 * `table ip6 cni_hostport`, known by a comment that is the container's id. Removed and recognised here, never written.
 *
 * The comment does not say of which network a rule is. The container's address does, which the rule holds; where no
 * address is known, all of the container's rules are taken for the ones that are meant, as by the reference plugin.
 */
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import type { Chain } from "../../../ffi/netlink/nftables/chain.ts";
import { compares } from "../../../ffi/netlink/nftables/expr/cmp.ts";
import { puts } from "../../../ffi/netlink/nftables/expr/immediate.ts";
import { delRule, type FoundRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { addressOf, appliesTo, type PortMappingsSpec } from "./port-mappings.ts";

/** Before 1.9.0 mappings of one address of the host had a chain of their own. */
const CHAINS = ["hostports", "hostip_hostports", "masquerading"];

function chainOf(family: 4 | 6, name: string): Chain {
  return { table: { family: family === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name: "cni_hostport" }, name };
}

function rulesOf(socket: NetlinkSocket, chain: Chain, family: 4 | 6, spec: PortMappingsSpec): FoundRule[] {
  const address = addressOf(spec, family)?.bytes;
  return listRules(socket, chain).filter(({ comment, expressions }) =>
    comment === spec.containerId &&
    (address === undefined || expressions.some((each) => puts(each, address) || compares(each, address)))
  );
}

export function remove(socket: NetlinkSocket, spec: PortMappingsSpec): void {
  commitUnchanged(socket, () => {
    const messages: NftMessage[] = [];
    for (const family of [4, 6] as const) {
      // The address of one family says that the container's other networks are to be spared in both.
      if (spec.addresses.length > 0 && addressOf(spec, family) === undefined) continue;
      for (const name of CHAINS) {
        const chain = chainOf(family, name);
        for (const { handle } of rulesOf(socket, chain, family, spec)) messages.push(delRule(chain, handle));
      }
    }
    return messages;
  });
}

/** Whether every mapping is there. */
export function has(socket: NetlinkSocket, spec: PortMappingsSpec): boolean {
  for (const family of [4, 6] as const) {
    if (addressOf(spec, family) === undefined) continue;
    const count = rulesOf(socket, chainOf(family, "hostports"), family, spec).length +
      rulesOf(socket, chainOf(family, "hostip_hostports"), family, spec).length;
    if (count < spec.mappings.filter((mapping) => appliesTo(spec, mapping, family)).length) return false;
  }
  return spec.mappings.length > 0;
}
