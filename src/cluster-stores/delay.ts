/** Waiting, where a signal may end it. */

/** Why something has ended that a signal has ended. */
export const NOT_WANTED = "it was no longer wanted";

export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal?.aborted) return done();
    const ended = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", ended);
      done();
    };
    const timer = setTimeout(ended, ms);
    signal?.addEventListener("abort", ended);
  });
}
