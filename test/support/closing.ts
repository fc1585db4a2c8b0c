/** Whether work closes the files that it opens. */
import { readdirSync } from "node:fs";
import { expect } from "bun:test";
import { targetOf } from "./if-there.ts";

/** Nothing stays open that `work` opens in the directory. */
export function closing<T>(directory: string, work: () => T): T {
  const before = openIn(directory);
  try {
    return work();
  } finally {
    expect(openIn(directory)).toBe(before);
  }
}

function openIn(directory: string): number {
  // The descriptor of the listing is closed by then.
  return readdirSync("/proc/self/fd").filter((fd) => targetOf(`/proc/self/fd/${fd}`).startsWith(directory)).length;
}
