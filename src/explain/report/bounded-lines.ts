/** Lists of a report, which say where they are cut. */

/** Nobody reads more. */
const MOST_LINES = 5000;

export function boundedLines<T>(all: readonly T[], show: (one: T) => string): string {
  const more = all.length - MOST_LINES, rest = more > 0 ? `(cut: ${more} lines more)\n` : "";
  return all.slice(0, MOST_LINES).map((one) => `${show(one)}\n`).join("") + rest;
}
