/** What modules keep during a call, and must not keep for the next one: a resident process serves many. */
const forgetting: (() => void)[] = [];

export function forgetAfterCall(forget: () => void): void {
  forgetting.push(forget);
}

/** A resident calls this between two calls. */
export function endCall(): void {
  for (const forget of forgetting) forget();
}
