/** Calls one after the other until `stop`, which answers how many there were, and throws what a call has thrown. */
export function keepCalling(call: () => Promise<unknown>): { stop(): Promise<number> } {
  let isRunning = true;
  const calling = (async () => {
    let count = 0;
    for (; isRunning; count++) await call();
    return count;
  })();
  // Nobody waits for it until then.
  calling.catch(() => undefined);
  return {
    stop() {
      isRunning = false;
      return calling;
    },
  };
}
