/** The identity of a DHCPv6 client. */
import { expect, test } from "bun:test";
import { clientIdOfDuid, duidOf, iaidOf } from "../../../../src/services/dhcp/v6/lease/identity.ts";
import { isDuid } from "../../../../src/services/dhcp/v6/message/message.ts";

test("a DUID is a UUID of the machine, the container and the network, and of nothing else", () => {
  const duid = duidOf("00112233445566778899aabbccddeeff", "c1", "net");
  // sha256sum of 00112233445566778899aabbccddeeffc1/net; version 8 and the variant are set.
  expect(duid.toHex()).toBe("0004f78e0df5ea19849eb72c5bfe8b36c6bb");
  expect(isDuid(duid)).toBe(true);
  const others = [
    ["00112233445566778899aabbccddeefe", "c1", "net"],
    ["00112233445566778899aabbccddeeff", "c2", "net"],
    ["00112233445566778899aabbccddeeff", "c1", "net2"],
  ] as const;
  expect(
    new Set([
      duid,
      ...others.map(([machine, container, network]) => duidOf(machine, container, network)),
    ].map((one) => one.toHex())).size,
  ).toBe(4);
});

test("an IAID is of the interface's name", () => {
  // sha256sum of eth0
  expect(iaidOf("eth0").toHex()).toBe("9c32a8c7");
  expect(iaidOf("eth1")).not.toEqual(iaidOf("eth0"));
});

test("the client id of DHCPv4 has both (RFC 4361)", () => {
  expect(clientIdOfDuid(Uint8Array.of(0, 4, 9), Uint8Array.of(1, 2, 3, 4)).toHex()).toBe("ff01020304000409");
});
