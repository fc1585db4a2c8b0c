/**
 * The numbers of a limit as the kernel's shapers take them, computed as the reference plugin computes them, step by
 * step: CHECK of either program compares them exactly. Pure.
 */
import { MAX_U32, TICKS_PER_US } from "../../ffi/netlink/tc/rate.ts";

/** In bytes, a second and at once. */
export interface Limit {
  rate: number;
  burst: number;
}

const US_PER_SECOND = 1_000_000;
/** How long a packet may wait in the queue. */
const LATENCY_US = 25_000;

/** How long the bucket takes to fill, in ticks. What does not fit is as long as can be told: four and a half minutes. */
export function bufferTicks({ rate, burst }: Limit): number {
  const us = Math.min(Math.floor((burst * US_PER_SECOND) / rate), MAX_U32);
  return Math.min(Math.floor(us * TICKS_PER_US), MAX_U32);
}

/** What the queue holds, in bytes. */
export function queueBytes({ rate, burst }: Limit): number {
  return Math.min(Math.floor((rate * LATENCY_US) / US_PER_SECOND) + burst, MAX_U32);
}

/** The reference plugin lets the number wrap around on the usual processors: what is there after its ADD. */
export function isBufferOf(limit: Limit, ticks: number): boolean {
  if (ticks === bufferTicks(limit)) return true;
  const us = Math.floor((limit.burst * US_PER_SECOND) / limit.rate);
  return ticks === wrapped(Math.floor(wrapped(us) * TICKS_PER_US));
}

/** The same of the queue. */
export function isQueueOf(limit: Limit, bytes: number): boolean {
  if (bytes === queueBytes(limit)) return true;
  return bytes === wrapped(wrapped(Math.floor((limit.rate * LATENCY_US) / US_PER_SECOND)) + limit.burst);
}

function wrapped(value: number): number {
  return value % (MAX_U32 + 1);
}
