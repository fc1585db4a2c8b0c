/** The tags of owners, which stand in every index: each release must compute the same. */
import { expect, test } from "bun:test";
import { leaseOf, tagOf } from "../../src/ipam/store.ts";

test.each([
  // The authors of FNV-1a give these values.
  ["", 0x811c9dc5],
  ["a", 0xe40c292c],
  ["foobar", 0xbf9cf968],
])("tagOf(%j) is FNV-1a", (text, hash) => expect(tagOf(text) >>> 0).toBe(hash));

test("no tag is 0, which means a free address", () => {
  expect(tagOf("\xcc\x24\x31\xc4")).toBe(1);
});

test("a lease has the tag of its file's text", () => {
  expect(leaseOf({ containerId: "c1", ifName: "eth0" })).toEqual({
    text: "c1\r\neth0",
    tag: tagOf("c1\r\neth0"),
  });
});
