/** A DHCPv6 message in its headers, for when its link has gone. */
import { expect, test } from "bun:test";
import { SERVERS_MAC, wrap } from "../../../../src/services/dhcp/v6/message/packet.ts";
import {
  ADVERTISE,
  DECLINE,
  headsOfReply,
  option,
  RECONFIGURE,
  REPLY,
} from "../../../../src/services/dhcp/v6/message/message.ts";
import { ip6 } from "../../../support/dhcp6-simulation.ts";

/** RFC 1071 over the pseudo-header (RFC 8200 section 8.1) and what follows the header of IPv6. */
function sumOf(packet: Uint8Array): number {
  let sum = packet.length - 40 + 17;
  for (let at = 8; at < packet.length; at += 2) sum += packet[at]! * 256 + (packet[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

test.each(["abc", "abcd", ""])("%p: to all servers of the link, from port to port, with a sum", (text) => {
  const message = new TextEncoder().encode(text), packet = wrap(ip6("fe80::7"), message), length = 8 + message.length;
  const hex = length.toString(16).padStart(4, "0");
  expect(packet.subarray(0, 46).toHex()).toBe(
    `60000000${hex}1101` + "fe800000000000000000000000000007" + "ff020000000000000000000000010002" + "02220223" + hex,
  );
  expect([packet.subarray(48), sumOf(packet)]).toEqual([message, 0xffff]);
  expect(SERVERS_MAC.toHex()).toBe("333300010002");
});

test("a sum of 0 is written as its other name, because 0 means none", () => {
  const sums = Array.from({ length: 0x10000 }, (_, value) => {
    const packet = wrap(ip6("fe80::7"), Uint8Array.of(value >> 8, value & 0xff));
    return packet[46]! * 256 + packet[47]!;
  });
  expect([sums.includes(0), sums.includes(0xffff)]).toEqual([false, true]);
});

test("answers to a message begin with its number", () => {
  expect(headsOfReply(Uint8Array.of(1, 0xab, 0xcd, 0xef, 9)).map((head) => head.toHex())).toEqual([
    "02abcdef",
    "07abcdef",
  ]);
  expect([ADVERTISE, REPLY, DECLINE, RECONFIGURE]).toEqual([2, 7, 9, 10]);
  expect(option).toEqual({
    ...{ clientId: 1, server: 2, ia: 3, iaAddress: 5, wanted: 6, preference: 7, elapsed: 8, status: 13 },
    ...{ rapidCommit: 14, nameServers: 23, search: 24, refresh: 32, timeServers: 56 },
    ...{ longestSolicitPause: 82, longestInformPause: 83 },
  });
});
