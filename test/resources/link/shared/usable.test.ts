/** MTUs and MAC addresses that no link can have. */
import { expect, test } from "bun:test";
import { CniError } from "../../../../src/cni/error.ts";
import {
  linkRefused,
  nameTakenError,
  requireUsableMac,
  requireUsableMtu,
} from "../../../../src/resources/link/shared/usable.ts";

test("an MTU is between 68 and 65535, or not given", () => {
  for (const mtu of [undefined, 0, 68, 1500, 65535]) expect(() => requireUsableMtu(mtu)).not.toThrow();
  for (
    const [mtu, why] of [[67, "less than device minimum"], [1, "less"], [
      65536,
      "greater than device maximum",
    ]] as const
  ) {
    expect(() => requireUsableMtu(mtu)).toThrow(`MTU ${mtu}: invalid argument (mtu ${why}`);
  }
});

test("a MAC address is no group's, and not all zeros", () => {
  for (const mac of [undefined, "", "02:00:00:00:00:00", "00:00:00:00:00:01", "fe:ff:ff:ff:ff:ff"]) {
    expect([mac, linkRefused("refused", mac).details]).toEqual([mac, ""]);
    expect(() => requireUsableMac(mac)).not.toThrow();
  }
  expect(linkRefused("refused", "00:00:00:00:00:00").details).toBe("the MAC address 00:00:00:00:00:00 is no address");
  for (const mac of ["01:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:01"]) {
    expect(linkRefused("refused", mac).details).toBe(`the MAC address ${mac} is a group's, and no link's`);
    expect(() => requireUsableMac(mac)).toThrow("cannot assign requested address");
  }
});

test("a taken name says what to do, and keeps its cause", () => {
  const cause = new Error("file exists"), error = nameTakenError("eth0 is there", cause);
  expect([error.message, error.cause, error instanceof CniError]).toEqual(["eth0 is there", cause, true]);
  expect(error.details).toContain("DEL the attachment first");
});
