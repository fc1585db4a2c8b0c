/**
 * What the reference plugin's nftables backend writes: rules in `table ip cni_hostport` and `table ip6 cni_hostport`, with
 * the container's id as comment.
 *
 * The comment does not name the network, but the rule holds the container's address there. Where no address is known, all
 * of the container's rules are removed, as by the reference plugin. GC cannot tell whose they are.
 */
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import type { Chain } from "../../../ffi/netlink/nftables/table.ts";
import { compares } from "../../../ffi/netlink/nftables/compare.ts";
import { puts } from "../../../ffi/netlink/nftables/action.ts";
import { delRule, type FoundRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { FAMILIES, type Family } from "../../../interop/iptables/rule.ts";
import type { ForeignBackend } from "../shared/backend.ts";
import { addressOf, appliesTo, type PortMappingsSpec } from "./spec.ts";

/** Before 1.9.0 mappings of one address of the host had a chain of their own. */
const CHAINS = ["hostports", "hostip_hostports", "masquerading"];

function chainOf(family: Family, name: string): Chain {
  return { table: { family: family === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, name: "cni_hostport" }, name };
}

function rulesOf(socket: NetlinkSocket, chain: Chain, family: Family, spec: PortMappingsSpec): FoundRule[] {
  const address = addressOf(spec, family)?.bytes;
  return listRules(socket, chain).filter(({ comment, expressions }) =>
    comment === spec.containerId &&
    (address === undefined || expressions.some((each) => puts(each, address) || compares(each, address)))
  );
}

function planRemoval(socket: NetlinkSocket, spec: PortMappingsSpec): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const family of FAMILIES) {
    // An address of the other family shows that rules of the container's other networks are to stay, in both families.
    if (spec.addresses.length > 0 && addressOf(spec, family) === undefined) continue;
    for (const name of CHAINS) {
      const chain = chainOf(family, name);
      for (const { handle } of rulesOf(socket, chain, family, spec)) messages.push(delRule(chain, handle));
    }
  }
  return messages;
}

/** Whether there is a rule for every mapping. */
function hasAll(socket: NetlinkSocket, spec: PortMappingsSpec): boolean {
  for (const family of FAMILIES) {
    if (addressOf(spec, family) === undefined) continue;
    const count = rulesOf(socket, chainOf(family, "hostports"), family, spec).length +
      rulesOf(socket, chainOf(family, "hostip_hostports"), family, spec).length;
    if (count < spec.mappings.filter((mapping) => appliesTo(spec, mapping, family)).length) return false;
  }
  return spec.mappings.length > 0;
}

export const backend: ForeignBackend<PortMappingsSpec> = {
  onlyNfTables: true,
  verify: (spec, { netfilter }) => hasAll(netfilter, spec) ? [] : ["rules of the reference plugin are missing"],
  remove(spec, { netfilter }) {
    commitUnchanged(netfilter, () => planRemoval(netfilter, spec));
  },
};
