/** Ports of bridges on the wire: their settings and their VLANs. */
import { expect, test } from "bun:test";
import { EPERM } from "../../../../src/ffi/errno.ts";
import {
  addPortVlans,
  delPortVlans,
  hasPorts,
  listPortVlans,
  setBridgePort,
  type VlanRange,
} from "../../../../src/ffi/netlink/route/bridge.ts";
import { RTM_NEWLINK } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { answering, bodyOf, refusing, sentAs, sentBy, socketTo } from "../fake-kernel.ts";

const HEADER = 16; // struct ifinfomsg
const port = { index: 7, name: "veth1" };
const OF_PORT = "07000000 07000000 00000000 00000000"; // AF_BRIDGE, the link

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

test("a port's settings are changed as far as they are given", () => {
  expect(sent((socket) => setBridgePort(socket, port, { hairpin: true, isolated: false }))).toEqual([
    "type 19, flags 0x5", // RTM_SETLINK
    OF_PORT,
    "12.4: 01",
    "12.33: 00",
  ]);
  expect(sent((socket) => setBridgePort(socket, port, { isolated: true })).slice(2)).toEqual(["12.33: 01"]);
  expect(() => setBridgePort(socketTo(refusing(EPERM)), port, { hairpin: true })).toThrow(
    "RTM_SETLINK bridge port veth1: operation not permitted",
  );
});

const ranges: VlanRange[] = [
  { first: 1, last: 1, pvid: true, untagged: true },
  { first: 2, last: 2, untagged: true },
  { first: 256, last: 4094 },
];

test("a port gets VLANs one by one and as ranges, with its master's leave", () => {
  expect(sent((socket) => addPortVlans(socket, port, ranges))).toEqual([
    "type 19, flags 0x5",
    OF_PORT,
    "26.0: 0100", // BRIDGE_FLAGS_MASTER
    "26.2: 06000100", // PVID and UNTAGGED
    "26.2: 04000200",
    "26.2: 08000001", // where the range begins,
    "26.2: 1000fe0f", // and where it ends
  ]);
});

test("a port loses VLANs, whatever their flags", () => {
  expect(sent((socket) => delPortVlans(socket, port, ranges.slice(0, 1)))).toEqual([
    "type 17, flags 0x5",
    OF_PORT,
    "26.0: 0100",
    "26.2: 00000100",
  ]);
});

test("no VLANs are no request; a refusal is a failure", () => {
  const kernel = answering(0);
  addPortVlans(socketTo(kernel), port, []);
  expect(kernel.sent).toEqual([]);
  expect(() => addPortVlans(socketTo(refusing(EPERM)), port, ranges)).toThrow(
    "bridge VLANs of veth1: operation not permitted",
  );
});

test("a port's VLANs are listed, others' are not", () => {
  // IFLA_AF_SPEC with IFLA_BRIDGE_FLAGS and IFLA_BRIDGE_VLAN_INFO
  const vlans = "06000000" + "01000000" + "08000200" + "06000100" + "08000200" + "00000001";
  const kernel = answering(
    RTM_NEWLINK,
    bodyOf("07000100 08000000 00000000 00000000", { 26: "08000200" + "06000900" }),
    bodyOf(OF_PORT, { 3: "766574683100", 26: vlans, 12: "08000200" + "06000800" }),
  );
  expect(listPortVlans(socketTo(kernel), port)).toEqual([
    { first: 1, last: 1, pvid: true, untagged: true },
    { first: 256, last: 256, pvid: false, untagged: false },
  ]);
  expect(sentAs(kernel, HEADER)).toEqual([
    "type 18, flags 0x301",
    "07000000 00000000 00000000 00000000",
    "29: 02000000", // RTEXT_FILTER_BRVLAN
  ]);
  expect(listPortVlans(socketTo(answering(RTM_NEWLINK + 1, bodyOf(OF_PORT, { 26: vlans }))), port)).toEqual([]);
});

test("where the kernel has no list of ports, links say whether they are ports", () => {
  const bridge = { index: 4, name: "br0" };
  const linkOf = (master: string) => bodyOf(OF_PORT, { 10: master });
  expect(hasPorts(socketTo(answering(RTM_NEWLINK, linkOf("05000000"), linkOf("04000000"))), bridge)).toBe(true);
  // Kernels that ignore the question list every link.
  const kernel = answering(RTM_NEWLINK, linkOf("05000000"));
  expect(hasPorts(socketTo(kernel), bridge)).toBe(false);
  expect(sentAs(kernel, HEADER)[2]).toBe("10: 04000000");
});
