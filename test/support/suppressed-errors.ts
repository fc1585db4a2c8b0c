/**
 * What a test has thrown, and what then failed when its machine was closed. The runner prints the message of such an error,
 * and neither of the two. The language writes none, so that all of them have this one.
 */
Object.defineProperty(SuppressedError.prototype, "message", {
  get(this: SuppressedError) {
    return `${textOf(this.suppressed)}\nAfterwards, what the test had opened could not be closed: ${
      textOf(this.error)
    }`;
  },
});

/** With the place where it was thrown. */
function textOf(error: unknown): string {
  return Bun.inspect(error).trim();
}
