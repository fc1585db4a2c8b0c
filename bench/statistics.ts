/** Statistics of samples. */

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

/** The median's standard error as a multiple of the distance of p10 and p90, for normal samples. */
const MEDIAN_ERROR = 1.253 / 2.563;

/** A few runs do not show how much they vary. Fewer than FEW_RUNS are taken to vary by a tenth of the median at least. */
const FEW_RUNS = 5, LEAST_SPREAD = 0.1;

/** Whether `more` is not above `less` by more than samples vary: twice the standard error of the medians' difference. */
export function isWithinNoise(more: Summary, less: Summary): boolean {
  const spread = ({ runs, median, p10, p90 }: Summary) =>
    Math.max(p90 - p10, runs < FEW_RUNS ? LEAST_SPREAD * median : 0);
  const variance = (summary: Summary) => (MEDIAN_ERROR * spread(summary)) ** 2 / summary.runs;
  const difference = more.median - less.median;
  return difference <= 0 || difference < 2 * Math.sqrt(variance(more) + variance(less));
}

/** The items in random order, so that drift over time affects all of them alike. */
export function shuffled<T>(items: readonly T[]): T[] {
  const order = [...items];
  for (let remaining = order.length; remaining > 1; remaining--) {
    const pick = Math.floor(Math.random() * remaining);
    [order[remaining - 1], order[pick]] = [order[pick]!, order[remaining - 1]!];
  }
  return order;
}
