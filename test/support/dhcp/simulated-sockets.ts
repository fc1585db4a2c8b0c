/**
 * Sockets without a kernel: what arrives passes the filter as bpf(4) has it. Their names are those of the calls that the
 * service makes (src/ffi/socket/packet.ts, udp.ts).
 */
import { type FilterRule, IP_HEADER, LINK_HEADER } from "../../../src/ffi/socket/filter.ts";

/** What a socket may receive. Packet sockets see what follows the header of the link, UDP sockets UDP's header and the rest. */
export interface Frame {
  /** The headers of the link and of IP, as far as there are any. */
  link: Uint8Array;
  ip: Uint8Array;
  /** What is counted from 0. */
  data: Uint8Array;
}

export class SimulatedSocket<Received> {
  readonly queue: Frame[] = [];
  isOpen = true;

  constructor(
    readonly fd: number,
    private rules: readonly FilterRule[],
    private readonly deliver: (to: Uint8Array, bytes: Uint8Array) => void,
    private readonly read: (frame: Frame) => Received,
  ) {}

  setFilter(rules: readonly FilterRule[]): void {
    this.rules = rules;
  }

  take(frame: Frame): void {
    if (keeps(this.rules, frame)) this.queue.push(frame);
  }

  /** A UDP socket is told the other end, a packet socket a hardware address. */
  send(to: Uint8Array | { address: Uint8Array }, bytes: Uint8Array): void {
    if (!this.isOpen) throw new Error("a closed socket sends");
    this.deliver(to instanceof Uint8Array ? to : to.address, bytes.slice());
  }

  receive(): Received | undefined {
    if (!this.isOpen) throw new Error("a closed socket receives");
    const frame = this.queue.shift();
    return frame && this.read(frame);
  }

  close(): void {
    if (!this.isOpen) throw new Error("a socket is closed twice");
    this.isOpen = false;
  }
}

type Condition = FilterRule["when"][number];

/** The first rule whose conditions all hold counts. A packet that ends before the place of a condition is dropped. */
export function keeps(rules: readonly FilterRule[], frame: Frame): boolean {
  for (const rule of rules) {
    const holding = rule.when.map((one) => holds(one, frame)), firstNot = holding.findIndex((one) => one !== true);
    if (firstNot < 0) return rule.keeps;
    if (holding[firstNot] === undefined) return false;
  }
  return false;
}

const SIZES: Record<number, number> = { 0x20: 4, 0x28: 2, 0x30: 1 }, BEHIND_HEADER = 0x20, IF_EQUAL = 0x15;

/** Undefined: the packet ends before. */
function holds({ load, at, compare, value, isWanted }: Condition, { link, ip, data }: Frame): boolean | undefined {
  const isBehind = load - BEHIND_HEADER >= 0x20, size = SIZES[isBehind ? load - BEHIND_HEADER : load]!;
  const [bytes, from] = at >= 0
    ? [data, isBehind ? at + 4 * (data[0]! & 0x0f) : at]
    : at < IP_HEADER
    ? [link, at - LINK_HEADER]
    : [ip, at - IP_HEADER];
  if (from + size > bytes.length) return undefined;
  let found = 0;
  for (const byte of bytes.subarray(from, from + size)) found = found * 256 + byte;
  return (compare === IF_EQUAL ? found === value : (found & value) !== 0) === isWanted;
}
