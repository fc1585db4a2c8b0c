/** Removals that must not keep each other from being tried. */

/** Tries every step, and throws what went wrong in any. */
export function attemptAll(steps: (() => void)[]): void {
  const failures: Error[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      failures.push(error as Error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, failures.map(({ message }) => message).join("; "));
}
