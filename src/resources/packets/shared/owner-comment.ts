/**
 * The comment that names an element's owner; nft(8) shows it. An address or a link's name may pass to another container:
 * only elements with the owner's comment are removed.
 *
 *     id: 4d2f…, if: eth0, net: mynet
 *
 * A text that is too long for a comment is cut off, and begins with its hash.
 */
import { COMMENT_LIMIT_BYTES } from "../../../ffi/netlink/nftables/comment.ts";
import { utf8 } from "../../../ffi/libc.ts";
import type { Owner } from "../../../contract/owner.ts";

const HASH_CHARACTERS = 16;

export function ownerComment(
  { containerId, ifName, network }: Omit<Owner, "network"> & { network?: string },
): string {
  const full = `id: ${containerId}, if: ${ifName}${network === undefined ? "" : `, net: ${network}`}`;
  if (fits(full)) return full;
  const hash = new Bun.CryptoHasher("sha256").update(full).digest("hex").slice(0, HASH_CHARACTERS);
  let cut = `${hash}, ${full}`.slice(0, COMMENT_LIMIT_BYTES);
  while (!fits(cut)) cut = cut.slice(0, -1);
  // Half of a surrogate pair would be read back as another character.
  return cut.toWellFormed();
}

/** Counts bytes: the interface's name may have more of them than characters. */
function fits(text: string): boolean {
  return utf8(text).length <= COMMENT_LIMIT_BYTES;
}

/** The owner that the comment names in full, if it is of the network. */
export function ownerIn(comment: string, network: string): Owner | undefined {
  const parts = /(?:^|, )id: ([^,]*), if: ([^,]*), net: /.exec(comment);
  if (parts === null) return undefined;
  const owner = { network, containerId: parts[1]!, ifName: parts[2]! };
  return ownerComment(owner) === comment ? owner : undefined;
}

/** For GC: `isValid` of an owner that may have been known by its container alone. */
export type IsValid = (owner: { containerId: string; ifName?: string }) => boolean;

/** For GC: whether the comment names an attachment of the network that is not valid. */
export function isLost(comment: string, network: string, isValid: IsValid): boolean {
  const owner = ownerIn(comment, network);
  return owner !== undefined && !isValid(owner);
}

/** The owner in eight bytes: a key that finds its element when address and ports are not known. */
export function ownerKey(owner: Owner): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(ownerComment(owner)).digest().subarray(0, 8);
}

/** Whether it names an attachment of the container. False when the comment was cut off within the id. */
export function isOfContainer(comment: string, containerId: string): boolean {
  const start = `id: ${containerId}, `;
  return comment.startsWith(start) || comment.startsWith(start, HASH_CHARACTERS + 2);
}

/** For messages: what the comment says of the owner. */
export function ownerInComment(comment: string): string {
  const [, containerId, ifName, network] = /(?:^|, )id: ([^,]*)(?:, if: ([^,]*))?(?:, net: (.*))?/.exec(comment) ??
    [];
  if (containerId === undefined) return comment === "" ? "somebody" : JSON.stringify(comment);
  const where = ifName === undefined ? "" : `, interface ${ifName}`;
  return `container ${containerId}${where}${network === undefined ? "" : ` of network ${network}`}`;
}
