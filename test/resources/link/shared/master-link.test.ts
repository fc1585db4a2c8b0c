/** Which MTUs a link may have on its master, and what the configuration tells of a master. */
import { expect, test } from "bun:test";
import type { Link } from "../../../../src/ffi/netlink/route/link.ts";
import { configuredMaster, requireMtuOf } from "../../../../src/resources/link/shared/master-link.ts";

test("an MTU is at most the master's, and 0 means that", () => {
  const master = { mtu: 1500 } as Link;
  for (const mtu of [0, 1, 1500]) expect(() => requireMtuOf(master, mtu)).not.toThrow();
  for (const mtu of [-1, 1501]) {
    expect(() => requireMtuOf(master, mtu)).toThrow(`invalid MTU ${mtu}, must be [0, master MTU(1500)]`);
  }
});

test("a master without a name is not known without looking", () => {
  expect(configuredMaster({ master: "", linkInContainer: true })).toBeUndefined();
  for (const inContainer of [true, false]) {
    expect(configuredMaster({ master: "m0", linkInContainer: inContainer })).toEqual({ name: "m0", inContainer });
  }
});
