/** Names for temporary files. */

let thread: string | undefined;

/** Part of the name of a temporary file: no two threads of this host that write at the same time have the same. */
export function writerId(): string {
  if (Bun.isMainThread) return `${process.pid}`;
  return thread ??= `${process.pid}-${Math.random().toString(36).slice(2)}`;
}
