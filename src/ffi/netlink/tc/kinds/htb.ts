/** htb: classes of traffic, each with a rate of its own (tc-htb(8), linux/pkt_sched.h TCA_HTB_*). */
import { attrTable, custom, u64 } from "../../attrs.ts";
import { HTB_VERSION, TCA_HTB_CEIL64, TCA_HTB_INIT, TCA_HTB_PARMS, TCA_HTB_RATE64 } from "../../uapi/pkt-sched.ts";
import { rate64, RATE_BYTES, readRate, writeRate } from "../rate.ts";
import type { TcKind } from "../tc-header.ts";

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
const params = custom<HtbClass>(TCA_HTB_PARMS, {
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
  params,
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
