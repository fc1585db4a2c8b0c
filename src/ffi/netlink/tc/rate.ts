/**
 * Rates as the kernel's shapers take them: struct tc_ratespec of linux/pkt_sched.h (cell_log u8, linklayer u8,
 * overhead u16, cell_align s16, mpu u16, rate u32), and an attribute of 64 bits for what does not fit. And time, counted
 * in ticks of 64 ns (PSCHED_SHIFT of net/pkt_sched.h, which /proc/net/psched tells).
 */
import type { Writer } from "../wire.ts";

export const RATE_BYTES = 12;
export const MAX_U32 = 0xffffffff;
const NS_PER_TICK = 64;
export const TICKS_PER_US = 1000 / NS_PER_TICK;

/** All sizes are in bytes. */
export function writeRate(writer: Writer, bytesPerSecond: number): void {
  writer.u8(0).u8(0).u16(0).u16(0).u16(0).u32(Math.min(bytesPerSecond, MAX_U32));
}

/** The attribute's value, where it is needed. */
export function rate64(bytesPerSecond: number): bigint | undefined {
  return bytesPerSecond > MAX_U32 ? BigInt(bytesPerSecond) : undefined;
}

/** What the struct at the payload's start says; the attribute of 64 bits goes before it. */
export function readRate(payload: Uint8Array): number {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getUint32(8, true);
}
