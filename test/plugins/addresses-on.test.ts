/** The addresses of a link that may go while they are asked for. */
import { expect, test } from "bun:test";
import type { Host } from "../../src/contract/host.ts";
import { EINVAL, ENODEV } from "../../src/ffi/errno.ts";
import { RTM_GETADDR } from "../../src/ffi/netlink/uapi/rtnetlink.ts";
import { addressesOn } from "../../src/plugins/shared/addresses-on.ts";
import { answeringEach, type Body, bodyOf, socketTo } from "../ffi/netlink/fake-kernel.ts";

/** It is asked for by a message. Shorter names are asked for by ioctl, which the fake kernel has not. */
const NAME = "a-name-of-16-ch.";
const link = bodyOf("00000100 07000000 00000000 00000000", { 3: "65746830" + "00" });
const address = bodyOf("02180000 07000000", { 1: "0a010203", 2: "0a010203" });

function asked(answer: Body[] | number): string[] {
  const kernel = answeringEach(undefined, ({ type }) => type === RTM_GETADDR ? answer : [link]);
  return [...addressesOn({ container: { route: socketTo(kernel) } } as unknown as Host, NAME)];
}

test("a link that goes after it was found has no addresses, and other refusals are failures", () => {
  expect(asked([address])).toEqual(["10.1.2.3"]);
  expect(asked(ENODEV)).toEqual([]);
  expect(() => asked(EINVAL)).toThrow("RTM_GETADDR");
});
