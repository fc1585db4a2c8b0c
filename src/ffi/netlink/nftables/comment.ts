/**
 * Comments as nft(8) stores them: a type-length-value list in an object's user data, which the kernel does not read
 * (libnftnl, struct nftnl_udata; type 0 is the comment of tables, rules and elements). nft cannot list more than 127
 * bytes.
 *
 * A rule of iptables-nft has its comment in a match instead, which is part of the rule's identity. We tag its owner
 * under a type of our own, which nft and iptables skip.
 */
const COMMENT = 0;
const OWNER = 0x50;
export const COMMENT_LIMIT_BYTES = 127;

export function comment(text: string): Uint8Array {
  return userdata(COMMENT, text);
}

/** User data for a rule that iptables also lists. */
export function ownerTag(text: string): Uint8Array {
  return userdata(OWNER, text);
}

function userdata(type: number, text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text).subarray(0, COMMENT_LIMIT_BYTES);
  const list = new Uint8Array(bytes.length + 3);
  list[0] = type;
  list[1] = bytes.length + 1;
  list.set(bytes, 2);
  return list;
}

/** The comment in the user data of an object, or "". */
export function commentIn(list: Uint8Array | undefined): string {
  return textIn(list, COMMENT) ?? "";
}

export function ownerTagIn(list: Uint8Array | undefined): string | undefined {
  return textIn(list, OWNER);
}

/** Whether an object with this user data has no owner, or the owner with this tag. */
export function isFreeFor(tag: Uint8Array, list: Uint8Array | undefined): boolean {
  if (list === undefined || list[0] !== OWNER) return true;
  if (tag.length !== list.length) return false;
  for (let index = 0; index < tag.length; index++) if (tag[index] !== list[index]) return false;
  return true;
}

function textIn(list: Uint8Array | undefined, type: number): string | undefined {
  for (let at = 0; list !== undefined && at + 2 <= list.length; at += 2 + list[at + 1]!) {
    if (list[at] !== type) continue;
    const end = list.indexOf(0, at + 2);
    return new TextDecoder().decode(list.subarray(at + 2, end < 0 ? list.length : end));
  }
  return undefined;
}
