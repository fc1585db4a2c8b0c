/**
 * What a socket receives, decided by the kernel before a packet costs anything (bpf(4), socket(7)). Rules are data: the
 * first whose conditions all hold counts, and what no rule keeps is dropped. So is a packet that ends before the place
 * that a condition looks at, if no rule before has kept it.
 */
import { ptr } from "../native.ts";
import { assembled } from "../packet-program.ts";
import { setOption } from "./socket.ts";

/** Load 4, 2 or 1 bytes; or from behind an IPv4 header, whose length is loaded first; compare; return how much to keep. */
const LOAD: Record<number, number> = { 4: 0x20, 2: 0x28, 1: 0x30 }, BEHIND_HEADER = 0x20, LOAD_HEADER_LENGTH = 0xb1;
const IF_EQUAL = 0x15, IF_ANY_BIT = 0x45, RETURN = 0x06;
const EVERYTHING = 0xffffffff, NOTHING = 0;

/** Places that are not counted from where the socket's data begins: the headers of the link and of IP. */
export const LINK_HEADER = -0x200000, IP_HEADER = -0x100000;
/** What the kernel knows of the packet: here, whom it is for. */
const PACKET_TYPE = -0x1000 + 4, OUTGOING = 4;

interface Condition {
  load: number;
  at: number;
  compare: number;
  value: number;
  isWanted: boolean;
}

export interface FilterRule {
  keeps: boolean;
  when: readonly Condition[];
}

/** A copy of what this host sends itself. */
export const ofThisHost: readonly Condition[] = [
  { load: LOAD[4]!, at: PACKET_TYPE, compare: IF_EQUAL, value: OUTGOING, isWanted: true },
];

/** These bytes are there. */
export function has(at: number, bytes: ArrayLike<number>): Condition[] {
  const conditions: Condition[] = [];
  for (let done = 0, size: number; done < bytes.length; done += size) {
    size = bytes.length - done >= 4 ? 4 : bytes.length - done >= 2 ? 2 : 1;
    let value = 0;
    for (let index = done; index < done + size; index++) value = value * 256 + bytes[index]!;
    conditions.push({ load: LOAD[size]!, at: at + done, compare: IF_EQUAL, value, isWanted: true });
  }
  return conditions;
}

/** None of these bits is set in the two bytes. */
export function hasNoBit(at: number, bits: number): Condition[] {
  return [{ load: LOAD[2]!, at, compare: IF_ANY_BIT, value: bits, isWanted: false }];
}

export function behindHeader(conditions: readonly Condition[]): Condition[] {
  return conditions.map((one) => ({ ...one, load: one.load + BEHIND_HEADER }));
}

/** Replaces an earlier filter. Packets that have arrived stay. */
export function setFilter(fd: number, rules: readonly FilterRule[]): void {
  const code = rules.flatMap(({ keeps, when }) => {
    const length = 2 * when.length + 1;
    const tests = when.flatMap(({ load, at, compare, value, isWanted }, index) => {
      const toNextRule = length - 2 * (index + 1);
      return [[load, 0, 0, at], [compare, isWanted ? 0 : toNextRule, isWanted ? toNextRule : 0, value]];
    });
    return [...tests, [RETURN, 0, 0, keeps ? EVERYTHING : NOTHING]];
  });
  attach(fd, [[LOAD_HEADER_LENGTH, 0, 0, 0], ...code, [RETURN, 0, 0, NOTHING]]);
}

/** struct sock_fprog. */
function attach(fd: number, instructions: readonly number[][]): void {
  const bytes = assembled(instructions),
    program = new BigUint64Array([BigInt(instructions.length), BigInt(ptr(bytes))]);
  setOption(fd, "SO_ATTACH_FILTER", program);
}
