/** Waiting for what is certain to come. */
const LIMIT_MS = 120_000;

/** Looks again and again; the limit only ends what hangs. */
export async function untilTrue<T>(look: () => T | Promise<T>, isRight: (found: T) => boolean): Promise<T> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    const found = await look();
    if (isRight(found)) return found;
    if (performance.now() > deadline) throw new Error(`still: ${JSON.stringify(found)}`);
    await Bun.sleep(5);
  }
}
