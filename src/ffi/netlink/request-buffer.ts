/** What all sockets share, because requests are strictly one after another: the bytes sent last, and their numbers. */
import { Writer } from "./wire.ts";

export const writer = new Writer();

let sequence = 0;

export function nextSequence(): number {
  return ++sequence;
}
