/** Taking back what a failed `apply` made. */

/**
 * For an `apply` that failed and may have made something. If that cannot be taken back either, the engine hears of it
 * and keeps the ledger, so that DEL tries again.
 */
export function undoAfter(cause: unknown, undo: () => void): void {
  try {
    undo();
  } catch (leftBy) {
    const message = `${(cause as Error).message}; it could not be undone: ${(leftBy as Error).message}`;
    throw Object.assign(new Error(message, { cause }), { leftBy });
  }
}

/** What `undoAfter` throws: `cause` made `apply` fail, `leftBy` kept what was made from being taken back. */
export function leavesSomething(error: unknown): error is { cause: unknown; leftBy: unknown } {
  return (error as { leftBy?: unknown }).leftBy !== undefined;
}
