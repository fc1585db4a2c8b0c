/** What keeps the host from packets of Open vSwitch, where the kernel has no netfilter. altered.test.ts has the rest. */
import { expect, test } from "bun:test";
import type { Host } from "../../../src/contract/host.ts";
import { EPROTONOSUPPORT, SyscallError } from "../../../src/ffi/errno.ts";
import { hostCopyDroppedKind } from "../../../src/resources/packets/host-copy-dropped.ts";

const host = {
  get netfilter(): never {
    throw new SyscallError("socket", EPROTONOSUPPORT);
  },
} as unknown as Host;
const spec = { network: "net", containerId: "c1", ifName: "eth0", link: "veth1" };

test("the kernel's datapath does without the rule", () => {
  const ofKernel = { ...spec, isKernelDatapath: true };
  hostCopyDroppedKind.apply(ofKernel, host);
  expect(hostCopyDroppedKind.verify(ofKernel, host)).toEqual([]);
  hostCopyDroppedKind.remove(ofKernel, host);
});

test("a process needs it", () => {
  expect(() => hostCopyDroppedKind.apply(spec, host)).toThrow("userspace datapath needs nf_tables");
});
