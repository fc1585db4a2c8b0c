/** Figures made of samples. */

export interface Summary {
  runs: number;
  median: number;
  p10: number;
  p90: number;
}

export function summarise(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return { runs: sorted.length, median: at(0.5), p10: at(0.1), p90: at(0.9) };
}

/** The items in random order, so that what drifts over time falls on all of them. */
export function shuffled<T>(items: readonly T[]): T[] {
  const order = [...items];
  for (let left = order.length; left > 1; left--) {
    const pick = Math.floor(Math.random() * left);
    [order[left - 1], order[pick]] = [order[pick]!, order[left - 1]!];
  }
  return order;
}
