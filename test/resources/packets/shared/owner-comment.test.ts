/** An nftables comment names its owner, fits, differs from every other owner's, and is read back correctly. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { comment, commentIn } from "../../../../src/ffi/netlink/nftables/comment.ts";
import { isOfContainer, ownerComment, ownerIn } from "../../../../src/resources/packets/shared/owner-comment.ts";

const name = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,200}$/);
const owner = fc.record({ network: name, containerId: name, ifName: fc.stringMatching(/^[a-z0-9.@-]{1,15}$/) });
/** The kernel takes any bytes for an interface's name. */
const anyOwner = fc.oneof(
  owner,
  fc.record({
    network: name,
    containerId: name,
    ifName: fc.string({ unit: fc.constantFrom("a", "é", "€", "🌉"), minLength: 1, maxLength: 7 }),
  }),
);

test("a comment names its owner, and fits where nft keeps comments", () => {
  expect(ownerComment({ network: "mynet", containerId: "ctr-0001", ifName: "eth0" }))
    .toBe("id: ctr-0001, if: eth0, net: mynet");
  fc.assert(fc.property(anyOwner, (one) => {
    // As it is written and read again.
    expect(commentIn(comment(ownerComment(one)))).toBe(ownerComment(one));
  }));
});

test("a container is told from those whose ids begin or end like its own", () => {
  fc.assert(fc.property(owner, (one) => {
    const text = ownerComment(one), { containerId } = one;
    if (containerId.length < 100) expect(isOfContainer(text, containerId)).toBe(true);
    expect(isOfContainer(text, containerId.slice(0, -1))).toBe(false);
    expect(isOfContainer(text, containerId.slice(1))).toBe(false);
    expect(isOfContainer(text, `${containerId}x`)).toBe(false);
  }));
});

test("two owners never have one comment", () => {
  fc.assert(fc.property(owner, owner, (one, other) => {
    fc.pre(JSON.stringify(one) !== JSON.stringify(other));
    expect(ownerComment(one)).not.toBe(ownerComment(other));
  }));
});

test("an owner is read back where it had room, and never a wrong one", () => {
  fc.assert(fc.property(owner, name, (one, otherNetwork) => {
    const found = ownerIn(ownerComment(one), one.network);
    if (found === undefined) expect(one.containerId.length).toBeGreaterThan(64);
    else expect(found).toEqual(one);
    if (otherNetwork !== one.network) expect(ownerIn(ownerComment(one), otherNetwork)).toBeUndefined();
  }));
});
