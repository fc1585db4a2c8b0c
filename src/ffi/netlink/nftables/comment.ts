/**
 * Comments, as nft(8) keeps them: a type-length-value list in an object's user data, which the kernel stores unread
 * (libnftnl, struct nftnl_udata; the comment is type 0 of tables, rules and elements alike). At most 127 bytes, or nft
 * cannot read its own listing.
 */
const COMMENT = 0;
export const COMMENT_LIMIT_BYTES = 127;

export function comment(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text).subarray(0, COMMENT_LIMIT_BYTES);
  const userdata = new Uint8Array(bytes.length + 3);
  userdata[0] = COMMENT;
  userdata[1] = bytes.length + 1;
  userdata.set(bytes, 2);
  return userdata;
}

/** The comment in the user data of an object, or "". */
export function commentIn(userdata: Uint8Array | undefined): string {
  for (let at = 0; userdata !== undefined && at + 2 <= userdata.length; at += 2 + userdata[at + 1]!) {
    if (userdata[at] !== COMMENT) continue;
    const end = userdata.indexOf(0, at + 2);
    return new TextDecoder().decode(userdata.subarray(at + 2, end < 0 ? userdata.length : end));
  }
  return "";
}
