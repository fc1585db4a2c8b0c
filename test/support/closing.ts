/** Whether work closes the files that it opens. */
import { readdirSync, readlinkSync } from "node:fs";
import { expect } from "bun:test";

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
  return readdirSync("/proc/self/fd").filter((fd) => leadsTo(fd).startsWith(directory)).length;
}

function leadsTo(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return ""; // The one of the listing.
  }
}
