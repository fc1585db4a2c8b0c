/**
 * What the reference plugins' nftables backend leaves, taken over: one rule an address in the chain `masq_checks` of
 * `table inet cni_plugins_masquerade`, known by a comment that begins with the hashes of network and attachment.
 * Removed and recognised here, never written.
 */
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { delRule, type FoundRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NFPROTO_INET } from "../../../ffi/netlink/uapi/nf-tables.ts";
import type { Owner } from "../../../contract/owner.ts";

const checks = { table: { family: NFPROTO_INET, name: "cni_plugins_masquerade" }, name: "masq_checks" };

function hash(text: string): string {
  return new Bun.CryptoHasher("sha512").update(text).digest("hex").slice(0, 16);
}

function isOf({ network, containerId, ifName }: Owner): (rule: FoundRule) => boolean {
  const start = `${hash(network)}-${hash(`${ifName}:${containerId}`)}`;
  return ({ comment }) => comment.startsWith(start);
}

function removeRules(socket: NetlinkSocket, isRemoved: (rule: FoundRule) => boolean): void {
  commitUnchanged(
    socket,
    () => listRules(socket, checks).filter(isRemoved).map(({ handle }) => delRule(checks, handle)),
  );
}

export function remove(socket: NetlinkSocket, owner: Owner): void {
  removeRules(socket, isOf(owner));
}

/** How many addresses of the attachment are masqueraded. */
export function count(socket: NetlinkSocket, owner: Owner): number {
  return listRules(socket, checks).filter(isOf(owner)).length;
}

/** For GC. A comment that was cut off before the end of the container's id says too little, and its rule stays. */
export function sweep(socket: NetlinkSocket, network: string, isValid: (owner: Owner) => boolean): void {
  removeRules(socket, (rule) => {
    const parts = /, net: [^,]*, if: ([^,]*), id: (.*)$/.exec(rule.comment);
    if (parts === null) return false;
    const owner = { network, ifName: parts[1]!, containerId: parts[2]! };
    return isOf(owner)(rule) && !isValid(owner);
  });
}
