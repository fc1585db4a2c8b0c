/** An nftables comment names its owner, fits, differs from every other owner's, and is read back correctly. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { comment, commentIn } from "../../../../src/ffi/netlink/nftables/comment.ts";
import {
  isLost,
  isOfContainer,
  ownerComment,
  ownerIn,
  ownerInComment,
  ownerKey,
} from "../../../../src/resources/packets/shared/owner-comment.ts";

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

const ofLength = (bytes: number) => ({
  network: "net",
  ifName: "eth0",
  containerId: "c".repeat(bytes - "id: , if: eth0, net: net".length),
});

test("what fits is not cut off; what does not begins with its hash, and is cut off between characters", () => {
  const sha = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
  expect(ownerComment(ofLength(127))).toHaveLength(127);
  expect(ownerIn(ownerComment(ofLength(127)), "net")).toEqual(ofLength(127));
  const long = `id: ${ofLength(128).containerId}, if: eth0, net: net`;
  expect(ownerComment(ofLength(128))).toBe(`${sha(long)}, ${long}`.slice(0, 127));
  const inLong = { ...ofLength(100), network: "n".repeat(40) };
  expect(isOfContainer(ownerComment(inLong), inLong.containerId)).toBe(true);
  expect(isOfContainer(ownerComment(inLong), inLong.containerId.slice(1))).toBe(false);
  // After 18 bytes for the hash, 100 for the id and 6 for ", if: " there is room for three of the name's five.
  const name = { ...inLong, containerId: "c".repeat(96), ifName: "aa€" };
  const full = `id: ${name.containerId}, if: aa€, net: ${inLong.network}`;
  expect(ownerComment(name)).toBe(`${sha(full)}, id: ${name.containerId}, if: aa`);
});

test("a key is eight bytes of the hash of the comment", () => {
  const one = { network: "net", containerId: "c1", ifName: "eth0" };
  const hash = new Bun.CryptoHasher("sha256").update("id: c1, if: eth0, net: net").digest("hex");
  expect(ownerKey(one).toHex()).toBe(hash.slice(0, 16));
});

test("lost is who is of the network, and not valid", () => {
  const comment = ownerComment({ network: "net", containerId: "c1", ifName: "eth0" });
  const asked: unknown[] = [];
  expect(isLost(comment, "net", (owner) => asked.push(owner) === 0)).toBe(true);
  expect(asked).toEqual([{ network: "net", containerId: "c1", ifName: "eth0" }]);
  expect(isLost(comment, "net", () => true)).toBe(false);
  expect(isLost(comment, "other", () => false)).toBe(false);
});

test("messages say of an owner what its comment says", () => {
  expect(
    ["id: c1, if: eth0, net: net", "0123456789abcdef, id: c1, if: et", "id: c1", "a text", ""].map(ownerInComment),
  )
    .toEqual([
      "container c1, interface eth0 of network net",
      "container c1, interface et",
      "container c1",
      '"a text"',
      "somebody",
    ]);
});
