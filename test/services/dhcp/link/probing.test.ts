/** Whether another host has an address: the bytes of the questions, and what counts as an answer. */
import { expect, test } from "bun:test";
import { announce, arpProbing } from "../../../../src/services/dhcp/link/arp.ts";
import { neighbourProbing } from "../../../../src/services/dhcp/link/ndp.ts";
import { NetnsHandle } from "../../../../src/services/dhcp/link/netns-handle.ts";
import { parseMac } from "../../../../src/net/mac.ts";
import { MAC, SimulatedLink } from "../../../support/dhcp/simulated-link.ts";
import { ip } from "../../../support/dhcp-simulation.ts";
import { ip6 } from "../../../support/dhcp6-simulation.ts";

const address = ip("192.168.77.50"), address6 = ip6("fd00:77::50"), rival = "02:00:00:00:00:99", nobody = "0.0.0.0";
const ETH_P_ARP = 0x0806, ETH_P_IPV6 = 0x86dd;
const handle = () => NetnsHandle.open({ netnsPath: "", ifName: "" });

function arp(operation: number, mac: string, sender: string, target: string): Uint8Array {
  const unknown = new Uint8Array(6), head = [0, 1, 8, 0, 6, 4, 0, operation];
  return Uint8Array.of(...head, ...parseMac(mac)!, ...ip(sender), ...unknown, ...ip(target));
}

test("a question has no sender, so that nobody learns one; an announcement has the address as both", () => {
  using link = new SimulatedLink();
  const probing = arpProbing(handle(), address, "fast", 5);
  expect(probing.look(5)).toBeUndefined();
  probing.close();
  announce(handle(), address);
  expect(link.packets.map(({ to, bytes }) => [to.toHex(), bytes])).toEqual([
    ["ffffffffffff", arp(1, MAC, nobody, "192.168.77.50")],
    ["ffffffffffff", arp(1, MAC, "192.168.77.50", "192.168.77.50")],
  ]);
  expect(link.open).toBe(0);
});

test.each([
  ["who has it answers", arp(2, rival, "192.168.77.50", "192.168.77.1"), rival, true],
  ["who has it asks for another", arp(1, rival, "192.168.77.50", "192.168.77.1"), rival, true],
  ["somebody is about to take it, too", arp(1, rival, nobody, "192.168.77.50"), rival, true],
  ["somebody looks for it", arp(1, rival, "192.168.77.1", "192.168.77.50"), rival, false],
  ["our own question comes back", arp(1, MAC, nobody, "192.168.77.50"), MAC, false],
  ["our own address answers", arp(2, MAC, "192.168.77.50", "192.168.77.1"), MAC, false],
  ["another address answers", arp(2, rival, "192.168.77.51", "192.168.77.50"), rival, false],
  ["a reply without a sender", arp(2, rival, nobody, "192.168.77.50"), rival, false],
  ["another operation", arp(3, rival, "192.168.77.50", "192.168.77.50"), rival, false],
  ["a cut message", arp(2, rival, "192.168.77.50", "192.168.77.1").subarray(0, 17), rival, false],
])("IPv4, %s", (_what, bytes, from, isTaken) => {
  using link = new SimulatedLink();
  const probing = arpProbing(handle(), address, "fast", 0);
  link.arrive(ETH_P_ARP, bytes, from);
  expect(probing.look(0)).toBe(isTaken ? "taken" : undefined);
});

function ndp(type: number, source: string, target: Uint8Array, protocol = 58): Uint8Array {
  const packet = new Uint8Array(64);
  packet[0] = 0x60;
  packet[6] = protocol;
  packet.set(ip6(source), 8);
  packet.set(ip6("ff02::1:ff00:50"), 24);
  packet[40] = type;
  packet.set(target, 48);
  return packet;
}

test("duplicate address detection asks the group of the address, from nobody, with a sum", () => {
  using link = new SimulatedLink();
  const probing = neighbourProbing(handle(), address6, "fast", 0);
  expect(probing.look(0)).toBeUndefined();
  const [{ to, bytes }] = link.packets as [typeof link.packets[number]];
  expect(to.toHex()).toBe("3333ff000050");
  expect(bytes.toHex()).toBe(
    "6000000000183aff" + "00".repeat(16) + "ff0200000000000000000001ff000050" +
      "8700" + "7c90" + "00000000" + "fd000077000000000000000000000050",
  );
  // RFC 1071: a packet with its sum sums up to nothing.
  let sum = 24 + 58;
  for (let at = 8; at < bytes.length; at += 2) sum += bytes[at]! * 256 + bytes[at + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  expect(sum).toBe(0xffff);
});

test.each([
  ["who has it answers", ndp(136, "fe80::1", address6), rival, true],
  ["somebody is about to take it, too", ndp(135, "::", address6), rival, true],
  ["somebody looks for it", ndp(135, "fe80::1", address6), rival, false],
  ["our own question comes back", ndp(135, "::", address6), MAC, false],
  ["another address answers", ndp(136, "fe80::1", ip6("fd00:77::51")), rival, false],
  ["a router advertises", ndp(134, "fe80::1", address6), rival, false],
  ["another protocol", ndp(136, "fe80::1", address6, 17), rival, false],
])("IPv6, %s", (_what, bytes, from, isTaken) => {
  using link = new SimulatedLink();
  const probing = neighbourProbing(handle(), address6, "fast", 0);
  link.arrive(ETH_P_IPV6, bytes, from);
  expect(probing.look(0)).toBe(isTaken ? "taken" : undefined);
});

test("an address that is not probed is free, and nobody is asked", () => {
  using link = new SimulatedLink();
  const probing = arpProbing(handle(), address, "none", 0);
  expect([probing.look(0), link.news()]).toEqual(["free", []]);
});

test("an address is free when its last question has had its time, and taken whenever somebody says so", () => {
  using link = new SimulatedLink();
  const probing = arpProbing(handle(), address, "full", 10), ask = "who has 192.168.77.50";
  expect([probing.due, probing.look(9.9), link.news()]).toEqual([10, undefined, []]);
  for (const at of [10, 11.5, 13]) {
    expect([probing.look(at), link.news(), probing.due]).toEqual([undefined, [ask], at + 1.5]);
  }
  expect([probing.look(14.4), probing.look(14.5), link.news()]).toEqual([undefined, "free", []]);
  link.arrive(ETH_P_ARP, arp(2, rival, "192.168.77.50", "192.168.77.1"), rival);
  expect(probing.look(14.5)).toBe("taken");
});
