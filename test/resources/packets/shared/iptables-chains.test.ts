/** Names and comments of a container's chain, as the reference plugins write them, and which errors are explained. */
import { expect, test } from "bun:test";
import { CniError } from "../../../../src/cni/error.ts";
import { ENOENT, EPERM } from "../../../../src/ffi/errno.ts";
import { NetlinkError } from "../../../../src/ffi/netlink/socket.ts";
import {
  containerChain,
  containerComment,
  explainingEnoent,
  namedIn,
} from "../../../../src/resources/packets/shared/iptables-chains.ts";

const named = { network: "net", containerId: "c1" };
const comment = 'name: "net" id: "c1"';

test("a chain has 28 characters: its beginning, and the hash of network and container", () => {
  const hash = new Bun.CryptoHasher("sha512").update("netc1").digest("hex");
  expect(containerChain("CNI-", named)).toBe(`CNI-${hash.slice(0, 24)}`);
  expect(containerChain("CNI-DN-", named)).toBe(`CNI-DN-${hash.slice(0, 21)}`);
});

test("a rule's comment says whose its chain is, if it is that one's", () => {
  expect(containerComment(named)).toBe(comment);
  const chain = containerChain("CNI-", named), portChain = containerChain("CNI-DN-", named);
  expect(namedIn("CNI-", comment, chain)).toEqual(named);
  expect(namedIn("CNI-DN-", `dnat ${comment}`, portChain)).toEqual(named);
  expect(namedIn("CNI-", 'name: "" id: ""', containerChain("CNI-", { network: "", containerId: "" }))).toBeDefined();
  for (
    const other of [undefined, "", `snat ${comment}`, `${comment} `, 'name: "net" id: "c2"', 'name: "ne" id: "tc1" x']
  ) {
    expect([other, namedIn("CNI-", other, chain)]).toEqual([other, undefined]);
  }
  expect([namedIn("CNI-", comment, undefined), namedIn("CNI-", comment, portChain)]).toEqual([undefined, undefined]);
});

test("what the kernel lacks is named where the transaction says that something is not there", () => {
  const run = (change: () => boolean) => explainingEnoent("it", "xt_some", "an option", change);
  const failing = (error: Error) => () => {
    throw error;
  };
  expect([run(() => true), run(() => false)]).toEqual([true, false]);
  const missing = new NetlinkError("add rule", ENOENT), denied = new NetlinkError("add rule", EPERM);
  try {
    run(failing(missing));
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(CniError);
    expect([(error as CniError).message, (error as CniError).details, (error as CniError).cause])
      .toEqual([`it: ${missing.message}`, "the kernel lacks xt_some; an option does without", missing]);
  }
  expect(() => run(failing(denied))).toThrow(denied);
});
