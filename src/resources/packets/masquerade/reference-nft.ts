/**
 * What the reference plugins' nftables backend writes: one rule for each address in the chain `masq_checks` of `table inet
 * cni_plugins_masquerade`. Its comment begins with hashes of the network and the attachment.
 */
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { delRule, type FoundRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NFPROTO_INET } from "../../../ffi/netlink/uapi/nf-tables.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { ForeignBackend } from "../shared/backend.ts";
import type { MasqueradeSpec } from "./spec.ts";

const checks = { table: { family: NFPROTO_INET, name: "cni_plugins_masquerade" }, name: "masq_checks" };

function hash(text: string): string {
  return new Bun.CryptoHasher("sha512").update(text).digest("hex").slice(0, 16);
}

function isOf({ network, containerId, ifName }: Owner): (rule: FoundRule) => boolean {
  const start = `${hash(network)}-${hash(`${ifName}:${containerId}`)}`;
  return ({ comment }) => comment.startsWith(start);
}

/** The comment may have been cut off within the container's id; then the owner is not known. */
function ownerOf(rule: FoundRule, network: string): Owner | undefined {
  const parts = /, net: [^,]*, if: ([^,]*), id: (.*)$/.exec(rule.comment);
  if (parts === null) return undefined;
  const owner = { network, ifName: parts[1]!, containerId: parts[2]! };
  return isOf(owner)(rule) ? owner : undefined;
}

function removeRules(socket: NetlinkSocket, isMeant: (rule: FoundRule) => boolean): void {
  commitUnchanged(
    socket,
    () => listRules(socket, checks).filter(isMeant).map(({ handle }) => delRule(checks, handle)),
  );
}

export const backend: ForeignBackend<MasqueradeSpec> = {
  onlyNfTables: true,
  /** Which of several addresses a rule is for does not matter here. */
  verify(spec, { netfilter }) {
    const count = listRules(netfilter, checks).filter(isOf(spec)).length;
    return count >= spec.addresses.length ? [] : ["rules of the reference plugins are missing"];
  },
  remove(spec, { netfilter }) {
    removeRules(netfilter, isOf(spec));
  },
  sweep(network, isValid, { netfilter }) {
    removeRules(netfilter, (rule) => {
      const owner = ownerOf(rule, network);
      return owner !== undefined && !isValid(owner);
    });
  },
};
