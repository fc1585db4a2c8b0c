/** Comments and owners in an object's user data, and whose an object is. */
import { expect, test } from "bun:test";
import {
  comment,
  COMMENT_LIMIT_BYTES,
  commentIn,
  isFreeFor,
  ownerTag,
  ownerTagIn,
} from "../../../../src/ffi/netlink/nftables/comment.ts";

const bytes = (hex: string) => Uint8Array.fromHex(hex.replaceAll(" ", ""));

test("a comment is of type 0, its length counts the NUL behind it, and nft can list it", () => {
  expect(comment("id: c").toHex()).toBe("00 06 69643a2063 00".replaceAll(" ", ""));
  expect(comment("x".repeat(200))).toHaveLength(COMMENT_LIMIT_BYTES + 3);
  expect(COMMENT_LIMIT_BYTES).toBe(127);
  expect(ownerTag("ab").toHex()).toBe("5003616200");
});

test("a comment is found behind others, with its NUL or without", () => {
  expect(commentIn(bytes("0003 616200"))).toBe("ab");
  expect(commentIn(bytes("5003 787900 0103 636400 0003 616200"))).toBe("ab");
  expect(commentIn(bytes("0002 6162"))).toBe("ab");
  expect(commentIn(bytes("0001 00"))).toBe("");
  expect(commentIn(bytes("0000"))).toBe("");
  expect(commentIn(bytes("00"))).toBe("");
  for (const none of [undefined, new Uint8Array(), bytes("5003 787900")]) expect(commentIn(none)).toBe("");
  expect(ownerTagIn(bytes("0003 616200 5003 787900"))).toBe("xy");
  expect(ownerTagIn(bytes("0003 616200"))).toBeUndefined();
  expect(ownerTagIn(bytes("5001 00"))).toBe("");
  expect(ownerTagIn(bytes("5000"))).toBe("");
});

test("an object is free for its owner, and for everybody when it has none", () => {
  const tag = ownerTag("ab");
  expect(isFreeFor(tag, undefined)).toBe(true);
  expect(isFreeFor(tag, comment("ab"))).toBe(true);
  expect(isFreeFor(tag, ownerTag("ab"))).toBe(true);
  for (const other of ["ac", "xb", "bb", "abc", "a", ""]) expect(isFreeFor(tag, ownerTag(other))).toBe(false);
  expect(isFreeFor(tag, tag.subarray(0, 4))).toBe(false);
});
