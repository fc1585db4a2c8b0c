/**
 * Queues that limit a rate or a length, with their options of linux/pkt_sched.h: tbf, a token bucket with a queue behind
 * it (tc-tbf(8)); htb, classes of traffic, each with a rate of its own (tc-htb(8)); pfifo and bfifo (tc-fifo(8)).
 */
import type { Writer } from "../wire.ts";
import { attrTable, custom, u64 } from "../attrs.ts";
import {
  HTB_VERSION,
  TCA_HTB_CEIL64,
  TCA_HTB_INIT,
  TCA_HTB_PARMS,
  TCA_HTB_RATE64,
  TCA_TBF_PARMS,
  TCA_TBF_RATE64,
} from "../uapi/traffic-control.ts";
import type { TcKind } from "./tc-object.ts";

/**
 * Rates of the kernel's shapers: struct tc_ratespec of linux/pkt_sched.h (cell_log u8, linklayer u8, overhead u16,
 * cell_align s16, mpu u16, rate u32), and a 64-bit attribute for larger rates. Time is counted in ticks of 64 ns
 * (PSCHED_SHIFT of net/pkt_sched.h; /proc/net/psched shows it).
 */
const RATE_BYTES = 12;
export const MAX_U32 = 0xffffffff;
const NS_PER_TICK = 64;
export const TICKS_PER_US = 1000 / NS_PER_TICK;

function writeRate(writer: Writer, bytesPerSecond: number): void {
  writer.u8(0).u8(0).u16(0).u16(0).u16(0).u32(Math.min(bytesPerSecond, MAX_U32));
}

/** The value of the 64-bit attribute; undefined when the struct can hold the rate. */
function rate64(bytesPerSecond: number): bigint | undefined {
  return bytesPerSecond > MAX_U32 ? BigInt(bytesPerSecond) : undefined;
}

/** The rate in the struct at the start of the payload; a 64-bit attribute takes precedence. */
function readRate(payload: Uint8Array): number {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getUint32(8, true);
}

interface Tbf {
  /** In bytes a second. */
  rate: number;
  /** The length of the queue in bytes. */
  limit: number;
  /** The size of the bucket as the time that filling it takes, in ticks. */
  buffer: number;
}

/** struct tc_tbf_qopt: rate, peak rate, limit u32, buffer u32, mtu u32. */
const params = custom<Tbf>(TCA_TBF_PARMS, {
  write(writer, { rate, limit, buffer }) {
    writeRate(writer, rate);
    writeRate(writer, 0);
    writer.u32(limit).u32(buffer).u32(0);
  },
  read(payload) {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    const limitAt = 2 * RATE_BYTES;
    return {
      rate: readRate(payload),
      limit: view.getUint32(limitAt, true),
      buffer: view.getUint32(limitAt + 4, true),
    };
  },
});

const tbfAttrs = attrTable("TCA_OPTIONS(tbf)", { params, rate64: u64(TCA_TBF_RATE64) });

export function tbf(values: Tbf): TcKind {
  return {
    name: "tbf",
    write: (writer) => tbfAttrs.encode(writer, { params: values, rate64: rate64(values.rate) }),
  };
}

export function readTbf(options: Uint8Array): Tbf {
  const { params, rate64: wide } = tbfAttrs.decode(options);
  const known = params ?? { rate: 0, limit: 0, buffer: 0 };
  return wide === undefined ? known : { ...known, rate: Number(wide) };
}

/** The default quantum of a class is its rate divided by this; tc(8) sends the same number. */
const RATE_TO_QUANTUM = 10;
/** Bytes that a class may send before the next class. The kernel logs a warning when it derives this from the rate. */
const QUANTUM = 200_000;

/** struct tc_htb_glob: version u32, rate2quantum u32, default class u32, debug u32, direct packets u32. */
const init = custom<{ defaultClass: number }>(TCA_HTB_INIT, {
  write: (writer, { defaultClass }) =>
    void writer.u32(HTB_VERSION).u32(RATE_TO_QUANTUM).u32(defaultClass).u32(0).u32(0),
  read: (payload) => ({ defaultClass: new DataView(payload.buffer, payload.byteOffset, 20).getUint32(8, true) }),
});

const qdiscAttrs = attrTable("TCA_OPTIONS(htb)", { init });

/** `defaultClass` is the minor number of the class for traffic that no filter assigns. */
export function htb(values: { defaultClass: number }): TcKind {
  return { name: "htb", write: (writer) => qdiscAttrs.encode(writer, { init: values }) };
}

export function readHtb(options: Uint8Array): { defaultClass: number } | undefined {
  return qdiscAttrs.decode(options).init;
}

export interface HtbClass {
  /** In bytes a second; also the ceiling. */
  rate: number;
  /** The size of the bucket as the time that filling it takes, in ticks. */
  buffer: number;
}

/** struct tc_htb_opt: rate, ceil, buffer u32, cbuffer u32, quantum u32, level u32, prio u32. */
const classParams = custom<HtbClass>(TCA_HTB_PARMS, {
  write(writer, { rate, buffer }) {
    writeRate(writer, rate);
    writeRate(writer, rate);
    writer.u32(buffer).u32(buffer).u32(QUANTUM).u32(0).u32(0);
  },
  read: (payload) => ({
    rate: readRate(payload),
    buffer: new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getUint32(2 * RATE_BYTES, true),
  }),
});

const classAttrs = attrTable("TCA_OPTIONS(htb class)", {
  params: classParams,
  rate64: u64(TCA_HTB_RATE64),
  ceil64: u64(TCA_HTB_CEIL64),
});

export function htbClass(values: HtbClass): TcKind {
  const wide = rate64(values.rate);
  return {
    name: "htb",
    write: (writer) => classAttrs.encode(writer, { params: values, rate64: wide, ceil64: wide }),
  };
}

export function readHtbClass(options: Uint8Array): HtbClass {
  const { params = { rate: 0, buffer: 0 }, rate64: wide } = classAttrs.decode(options);
  return wide === undefined ? params : { ...params, rate: Number(wide) };
}

/** struct tc_fifo_qopt: limit u32. */
export function bfifo(limitBytes: number): TcKind {
  return { name: "bfifo", write: (writer) => void writer.u32(limitBytes) };
}

export function pfifo(limitPackets: number): TcKind {
  return { name: "pfifo", write: (writer) => void writer.u32(limitPackets) };
}
