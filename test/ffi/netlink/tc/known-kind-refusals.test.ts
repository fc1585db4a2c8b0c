/** Asking whether the kernel knows a kind: what it is asked, and what its refusals say. */
import { expect, test } from "bun:test";
import { EEXIST, EINVAL, ENOENT, EPERM } from "../../../../src/ffi/errno.ts";
import { knowsAction, knowsQdisc } from "../../../../src/ffi/netlink/tc/known-kind.ts";
import { FakeKernel, refusing, sentAs, socketTo } from "../fake-kernel.ts";

function asked(work: (kernel: FakeKernel) => void, headerBytes: number): string[] {
  const kernel = refusing(EINVAL);
  work(kernel);
  return sentAs(kernel, headerBytes);
}

test("a queueing discipline is asked for on the loopback, with sizes that no kernel takes", () => {
  expect(asked((kernel) => knowsQdisc(socketTo(kernel), "htb"), 20)).toEqual([
    "type 36, flags 0x605", // RTM_NEWQDISC: a request with an ACK, create, exclusively
    "00000000 01000000 00000000 ffffffff 00000000", // TC_H_ROOT
    "1: 68746200",
  ]);
  expect(asked((kernel) => knowsQdisc(socketTo(kernel), "ingress"), 20).slice(1)).toEqual([
    "00000000 01000000 0000ffff f1ffffff 00000000", // TC_H_INGRESS
    "1: 696e677265737300",
  ]);
});

test("an action is asked for without its options", () => {
  expect(asked((kernel) => knowsAction(socketTo(kernel), "mirred"), 4)).toEqual([
    "type 48, flags 0x605", // RTM_NEWACTION
    "00000000",
    "1.1.1: 6d697272656400",
  ]);
});

test("what the kernel objects to says whether it knows the kind", () => {
  for (const errno of [EINVAL, EEXIST]) expect(knowsQdisc(socketTo(refusing(errno)), "htb")).toBe(true);
  expect(knowsQdisc(socketTo(refusing(ENOENT)), "htb")).toBe(false);
  expect(() => knowsQdisc(socketTo(refusing(EPERM)), "htb")).toThrow(
    "RTM_NEWQDISC htb on lo: operation not permitted",
  );
  expect(knowsAction(socketTo(refusing(EINVAL)), "mirred")).toBe(true);
  expect(knowsAction(socketTo(refusing(ENOENT)), "mirred")).toBe(false);
  expect(knowsAction(socketTo(refusing(EPERM)), "mirred")).toBeUndefined();
  expect(() => knowsAction(socketTo(refusing(13)), "mirred")).toThrow("RTM_NEWACTION mirred: permission denied");
  expect(() => knowsQdisc(socketTo(refusing(0)), "htb")).toThrow(
    "RTM_NEWQDISC htb on lo: the kernel did what cannot be done",
  );
});
