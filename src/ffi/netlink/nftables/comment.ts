/**
 * Comments, as nft(8) keeps them: a type-length-value list in an object's user data, which the kernel stores unread
 * (libnftnl, struct nftnl_udata; the comment is type 0 of tables, rules and elements alike). At most 127 bytes, or nft
 * cannot read its own listing.
 *
 * Rules of iptables-nft have no comment there but as one of their matches, which the rule is known by. Whose such a rule
 * is stands under a type of ours, which both programs skip.
 */
const COMMENT = 0;
const OWNER = 0x50;
export const COMMENT_LIMIT_BYTES = 127;

export function comment(text: string): Uint8Array {
  return userdata(COMMENT, text);
}

/** For a rule that iptables is to take for its own. */
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

/** Whether an object with this user data belongs to nobody, or to the one with this tag. */
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
