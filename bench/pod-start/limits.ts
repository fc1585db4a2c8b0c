/** Limits that fail a build. */
import type { EngineRows } from "./report.ts";

export interface Limits {
  /** The largest part of theirs that the start of a container may take with ours. */
  ratio?: number | undefined;
  /** The longest start with ours. */
  ms?: number | undefined;
}

/** A line for each limit that a median start with ours has passed. */
export function beyond(engines: readonly EngineRows[], { ratio, ms }: Limits): string[] {
  return engines.flatMap(({ engine, rows: { ours, theirs } }) => {
    const took = ours.start.median, start = `${engine} starts a container with ours in ${took.toFixed(0)} ms`;
    const found: string[] = [];
    if (ratio !== undefined && theirs !== undefined && took > ratio * theirs.start.median) {
      const reached = (took / theirs.start.median).toFixed(2), beside = theirs.start.median.toFixed(0);
      found.push(`${start}, ${reached} of the ${beside} ms with theirs; --limit is ${ratio}`);
    }
    if (ms !== undefined && took > ms) found.push(`${start}; --limit-ms is ${ms}`);
    return found;
  });
}
