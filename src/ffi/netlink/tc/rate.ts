/**
 * Rates of the kernel's shapers: struct tc_ratespec of linux/pkt_sched.h (cell_log u8, linklayer u8, overhead u16,
 * cell_align s16, mpu u16, rate u32), and a 64-bit attribute for larger rates. Time is counted in ticks of 64 ns
 * (PSCHED_SHIFT of net/pkt_sched.h; /proc/net/psched shows it).
 */
import type { Writer } from "../wire.ts";

export const RATE_BYTES = 12;
export const MAX_U32 = 0xffffffff;
const NS_PER_TICK = 64;
export const TICKS_PER_US = 1000 / NS_PER_TICK;

export function writeRate(writer: Writer, bytesPerSecond: number): void {
  writer.u8(0).u8(0).u16(0).u16(0).u16(0).u32(Math.min(bytesPerSecond, MAX_U32));
}

/** The value of the 64-bit attribute; undefined when the struct can hold the rate. */
export function rate64(bytesPerSecond: number): bigint | undefined {
  return bytesPerSecond > MAX_U32 ? BigInt(bytesPerSecond) : undefined;
}

/** The rate in the struct at the start of the payload; a 64-bit attribute takes precedence. */
export function readRate(payload: Uint8Array): number {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getUint32(8, true);
}
