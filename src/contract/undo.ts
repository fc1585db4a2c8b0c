/** Undoing what a failed `apply` made. */

/**
 * Runs `undo` after `apply` failed with `cause`. If `undo` fails too, throws an error with both messages. The engine
 * then keeps the ledger, so DEL tries again.
 */
export function undoAfter(cause: unknown, undo: () => void): void {
  try {
    undo();
  } catch (undoError) {
    const message = `${(cause as Error).message}; it could not be undone: ${(undoError as Error).message}`;
    throw Object.assign(new Error(message, { cause }), { undoError });
  }
}

/** Recognises the error of `undoAfter`: `cause` made `apply` fail, `undoError` made the undo fail. */
export function isIncompleteUndo(error: unknown): error is { cause: unknown; undoError: unknown } {
  return (error as { undoError?: unknown }).undoError !== undefined;
}
