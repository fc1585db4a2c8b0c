/**
 * Computes the kernel's parameters of a rate limit exactly as the reference plugin does: CHECK of either program compares
 * them for equality. Pure.
 */
import { MAX_U32, TICKS_PER_US } from "../../../ffi/netlink/tc/shapers.ts";

export interface Limit {
  /** In bytes per second. */
  rate: number;
  /** In bytes. */
  burst: number;
}

const US_PER_SECOND = 1_000_000;
/** The longest time that a packet waits in the queue. */
const LATENCY_US = 25_000;

/** The time in ticks that the bucket takes to fill, at most what fits into 32 bits: four and a half minutes. */
export function bufferTicks({ rate, burst }: Limit): number {
  const us = Math.min(Math.floor((burst * US_PER_SECOND) / rate), MAX_U32);
  return Math.min(Math.floor(us * TICKS_PER_US), MAX_U32);
}

/** The size of the queue in bytes. */
export function queueBytes({ rate, burst }: Limit): number {
  return Math.min(Math.floor((rate * LATENCY_US) / US_PER_SECOND) + burst, MAX_U32);
}

/** Also accepts the number after the reference plugin's ADD, which wraps around on most processors. */
export function isBufferOf(limit: Limit, ticks: number): boolean {
  if (ticks === bufferTicks(limit)) return true;
  const us = Math.floor((limit.burst * US_PER_SECOND) / limit.rate);
  return ticks === wrapped(Math.floor(wrapped(us) * TICKS_PER_US));
}

/** Like `isBufferOf`, for the queue. */
export function isQueueOf(limit: Limit, bytes: number): boolean {
  if (bytes === queueBytes(limit)) return true;
  return bytes === wrapped(wrapped(Math.floor((limit.rate * LATENCY_US) / US_PER_SECOND)) + limit.burst);
}

function wrapped(value: number): number {
  return value % (MAX_U32 + 1);
}
