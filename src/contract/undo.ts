/** Undoing what a failed `apply` made. */

/**
 * Runs `undo` after `apply` failed with `cause`. If `undo` fails too, throws an error with both messages. The engine then
 * keeps the ledger, so DEL tries again.
 */
export function undoAfter(cause: unknown, undo: () => void): void {
  try {
    undo();
  } catch (leftBy) {
    const message = `${(cause as Error).message}; it could not be undone: ${(leftBy as Error).message}`;
    throw Object.assign(new Error(message, { cause }), { leftBy });
  }
}

/** Recognises the error of `undoAfter`: `cause` made `apply` fail, `leftBy` made the undo fail. */
export function leavesSomething(error: unknown): error is { cause: unknown; leftBy: unknown } {
  return (error as { leftBy?: unknown }).leftBy !== undefined;
}
