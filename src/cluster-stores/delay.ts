/** Waiting, where a signal may end it. */
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
