/** Datagrams to the kernel and from it, through a socket opened by libnl where the host has it, and by socket(2). */
import { afterEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { type KernelTransport, NETLINK_ROUTE, openTransport } from "../../../src/ffi/netlink/transport.ts";
import { eachMessage, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE } from "../../../src/ffi/netlink/wire.ts";
import { linkHeader } from "../../../src/ffi/netlink/route/link-kinds.ts";
import { RTM_GETLINK, RTM_NEWLINK } from "../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { message } from "./fake-kernel.ts";

const { PATCHBAY_NETLINK } = process.env;
afterEach(() => {
  if (PATCHBAY_NETLINK === undefined) delete process.env.PATCHBAY_NETLINK;
  else process.env.PATCHBAY_NETLINK = PATCHBAY_NETLINK;
});

const NOOP = 1;

/** A message, `bytes` long behind its header. */
const zeros = (type: number, flags: number, bytes: number) =>
  message(type, 7, flags, (writer) => void writer.raw(new Uint8Array(bytes)));

/** The types of all that the kernel answers, until the end of the dump. */
function answers(transport: KernelTransport, timeoutMs: number | undefined): number[] {
  const types: number[] = [];
  while (types.at(-1) !== NLMSG_DONE) {
    const { bytes, sentBytes, sender } = transport.receive(timeoutMs)!;
    expect([sentBytes, sender]).toEqual([bytes.length, 0]);
    eachMessage(bytes, ({ type, sequence }) => {
      expect(sequence).toBe(7);
      types.push(type);
    });
  }
  return types;
}

test.each(["socket(2)", "libnl, if it is there"])(
  "what is asked is answered, and nothing else comes: by %s",
  (how) => {
    const isRaw = how === "socket(2)";
    if (isRaw) process.env.PATCHBAY_NETLINK = "raw";
    const open = () => readdirSync("/proc/self/fd").length;
    openTransport(NETLINK_ROUTE).close();
    const before = open(), transport = openTransport(NETLINK_ROUTE);
    if (isRaw) expect(transport.opened).toBe("raw");
    for (const timeoutMs of [undefined, 60_000]) {
      expect([transport.receive(0), transport.receive(1)]).toEqual([undefined, undefined]);
      transport.send(zeros(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, linkHeader.bytes), "links");
      expect(new Set(answers(transport, timeoutMs))).toEqual(new Set([RTM_NEWLINK, NLMSG_DONE]));
    }
    expect(transport.receive(0)).toBeUndefined();
    transport.close();
    expect(open()).toBe(before);
  },
);

test("a datagram may be longer than a socket takes by default", () => {
  const transport = openTransport(NETLINK_ROUTE);
  for (const bytes of [32 * 1024 - 16, 32 * 1024, 300_000]) {
    transport.send(zeros(NOOP, 0, bytes), "nothing");
    expect(transport.receive(0)).toBeUndefined();
  }
  transport.close();
  expect(() => transport.send(zeros(NOOP, 0, 4), "nothing")).toThrow(
    "sendto AF_NETLINK nothing: bad file descriptor",
  );
  expect(() => transport.receive(0)).toThrow("recvfrom AF_NETLINK: bad file descriptor");
});
