/** Queueing disciplines, classes and filters on the wire (tc(8)). */
import { expect, test } from "bun:test";
import { EEXIST, EINVAL, ENODEV, ENOENT, EPERM } from "../../../../src/ffi/errno.ts";
import {
  addClass,
  addFilter,
  addQdisc,
  delFilters,
  delQdisc,
  getQdisc,
  listClasses,
  listFilters,
  listQdiscs,
} from "../../../../src/ffi/netlink/tc/queueing.ts";
import { tcHandle, type TcKind } from "../../../../src/ffi/netlink/tc/tc-object.ts";
import { RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { ETH_P_IPV6, TC_H_ROOT } from "../../../../src/ffi/netlink/uapi/traffic-control.ts";
import { answering, bodyOf, refusing, sentAs, sentBy, socketTo } from "../fake-kernel.ts";

const HEADER = 20; // struct tcmsg
const link = { index: 7, name: "eth0" };
const one = tcHandle(1), root = { link, parent: TC_H_ROOT, handle: one };
const list = { link, parent: one, priority: 5, protocol: ETH_P_IPV6 };

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

const kind: TcKind = { name: "k", write: (writer) => void writer.u32(1) };

test("something is added in its place, exclusively", () => {
  expect(sent((socket) => addQdisc(socket, root, kind))).toEqual([
    "type 36, flags 0x605", // RTM_NEWQDISC: a request with an ACK, create, exclusively
    "00000000 07000000 00000100 ffffffff 00000000",
    "1: 6b00",
    "2: 01000000",
  ]);
  const class1 = { link, parent: one, handle: tcHandle(1, 0x30) };
  expect(sent((socket) => addClass(socket, class1, { name: "k" }))).toEqual([
    "type 40, flags 0x605",
    "00000000 07000000 30000100 00000100 00000000",
    "1: 6b00",
  ]);
  expect(sent((socket) => addFilter(socket, list, kind)).slice(0, 2)).toEqual([
    "type 44, flags 0x605",
    "00000000 07000000 00000000 00000100 86dd0500", // the protocol in network order
  ]);
  expect(() => addQdisc(socketTo(refusing(EEXIST)), root, kind)).toThrow("RTM_NEWQDISC k on eth0: file exists");
});

test("a queueing discipline is deleted if it is the one, filters as a list", () => {
  expect(sent((socket) => delQdisc(socket, root, "htb"))).toEqual([
    "type 37, flags 0x5",
    "00000000 07000000 00000100 ffffffff 00000000",
    "1: 68746200",
  ]);
  expect(sent((socket) => delFilters(socket, list))).toEqual([
    "type 45, flags 0x5",
    "00000000 07000000 00000000 00000100 86dd0500",
  ]);
});

test("what is not there any more is no failure; another refusal is one", () => {
  expect(delFilters(socketTo(answering(0)), list)).toBe("deleted");
  for (const errno of [ENOENT, EINVAL, ENODEV]) {
    expect(delQdisc(socketTo(refusing(errno)), root, "htb")).toBe("absent");
    expect(listFilters(socketTo(refusing(errno)), link, one)).toEqual([]);
  }
  const refused = socketTo(refusing(EPERM));
  expect(() => delQdisc(refused, root, "htb")).toThrow("RTM_DELQDISC htb on eth0: operation not permitted");
  expect(() => delFilters(refused, list)).toThrow("RTM_DELTFILTER eth0: operation not permitted");
  expect(() => listFilters(refused, link, one)).toThrow("RTM_GETTFILTER eth0: operation not permitted");
});

const listed = bodyOf("00000000 07000000 30000100 00000100 86dd0500", { 1: "68746200", 2: "0102" });
const object = {
  linkIndex: 7,
  handle: 0x10030,
  parent: 0x10000,
  info: 0x5dd86,
  kind: "htb",
  options: Uint8Array.of(1, 2),
};

test("one is asked for by its place, and the kernel to answer who asks", () => {
  const kernel = answering(RTM_NEWQDISC, listed);
  expect(getQdisc(socketTo(kernel), link, TC_H_ROOT)).toEqual(object);
  expect(sentAs(kernel, HEADER)).toEqual([
    "type 38, flags 0xd", // NLM_F_ECHO, too
    "00000000 07000000 00000000 ffffffff 00000000",
  ]);
  expect(getQdisc(socketTo(answering(RTM_NEWTCLASS, listed)), link, TC_H_ROOT)).toBeUndefined();
  for (const errno of [ENOENT, ENODEV]) {
    expect(getQdisc(socketTo(refusing(errno)), link, TC_H_ROOT)).toBeUndefined();
  }
  expect(() => getQdisc(socketTo(refusing(EPERM)), link, TC_H_ROOT)).toThrow("RTM_GETQDISC eth0: operation not");
});

test("all are listed: of every link, of one, of one place", () => {
  const ofLinks = answering(RTM_NEWQDISC, listed, bodyOf("00000000 08000000 00000000 ffffffff 00000000"));
  expect(listQdiscs(socketTo(ofLinks))).toEqual([
    object,
    { linkIndex: 8, handle: 0, parent: 0xffffffff, info: 0, kind: "", options: new Uint8Array() },
  ]);
  expect(sentAs(ofLinks, HEADER)).toEqual([
    "type 38, flags 0x301",
    "00000000 00000000 00000000 00000000 00000000",
  ]);
  expect(listClasses(socketTo(answering(RTM_NEWTCLASS, listed)), link)).toEqual([object]);
  expect(listFilters(socketTo(answering(RTM_NEWTFILTER, listed)), link, one)).toEqual([
    { ...object, priority: 5, protocol: ETH_P_IPV6 },
  ]);
  expect(listClasses(socketTo(answering(RTM_NEWQDISC, listed)), link)).toEqual([]);
});
