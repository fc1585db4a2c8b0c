/** Calls one after the other until `stop`, which answers how many there were. Throws what a call throws. */
export function keepCalling(call: () => Promise<unknown>): { stop(): Promise<number> } {
  let isRunning = true;
  const calling = (async () => {
    let count = 0;
    for (; isRunning; count++) await call();
    return count;
  })();
  return {
    stop() {
      isRunning = false;
      return calling;
    },
  };
}
