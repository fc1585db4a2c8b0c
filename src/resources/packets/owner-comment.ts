/**
 * The owner of a set element, written where nft(8) shows it. An address or a link name may become somebody else's;
 * only what carries the owner's comment is removed.
 *
 *     id: 4d2f…, if: eth0, net: mynet
 *
 * When it does not fit into a comment, its hash stands before it and the end is cut off.
 */
import { COMMENT_LIMIT_BYTES } from "../../ffi/netlink/nftables/comment.ts";
import { utf8 } from "../../ffi/libc.ts";
import type { Owner } from "../../contract/owner.ts";

const HASH_CHARACTERS = 16;

export function ownerComment(
  { containerId, ifName, network }: Omit<Owner, "network"> & { network?: string },
): string {
  const whole = `id: ${containerId}, if: ${ifName}${network === undefined ? "" : `, net: ${network}`}`;
  if (fits(whole)) return whole;
  const hash = new Bun.CryptoHasher("sha256").update(whole).digest("hex").slice(0, HASH_CHARACTERS);
  let cut = `${hash}, ${whole}`.slice(0, COMMENT_LIMIT_BYTES);
  while (!fits(cut)) cut = cut.slice(0, -1);
  // Half of a character would be read back as another one.
  return cut.toWellFormed();
}

/** The interface's name is the one that may have more bytes than characters. */
function fits(text: string): boolean {
  return utf8(text).length <= COMMENT_LIMIT_BYTES;
}

/** The owner that wrote the comment, if it belongs to the network and can be told. */
export function ownerIn(comment: string, network: string): Owner | undefined {
  const parts = /(?:^|, )id: ([^,]*), if: ([^,]*), net: /.exec(comment);
  if (parts === null) return undefined;
  const owner = { network, containerId: parts[1]!, ifName: parts[2]! };
  return ownerComment(owner) === comment ? owner : undefined;
}

/** The owner in eight bytes: a key under which its element is found without its address or ports. */
export function ownerKey(owner: Owner): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(ownerComment(owner)).digest().subarray(0, 8);
}

/** Whether it is of any attachment of the container. One that was cut off before the end of the id counts as none. */
export function isOfContainer(comment: string, containerId: string): boolean {
  const start = `id: ${containerId}, `;
  return comment.startsWith(start) || comment.startsWith(start, HASH_CHARACTERS + 2);
}

/** For messages: as much as the comment tells. */
export function ownerText(comment: string): string {
  const [, containerId, ifName, network] = /(?:^|, )id: ([^,]*)(?:, if: ([^,]*))?(?:, net: (.*))?/.exec(comment) ??
    [];
  if (containerId === undefined) return comment === "" ? "somebody" : JSON.stringify(comment);
  const where = ifName === undefined ? "" : `, interface ${ifName}`;
  return `container ${containerId}${where}${network === undefined ? "" : ` of network ${network}`}`;
}
