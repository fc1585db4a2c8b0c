/**
 * Whether a process in a network namespace listens at a path. The file alone does not tell: a daemon binds its socket
 * before it listens, and connections are refused until then; and it stays when nobody listens any more.
 */
import { textOf } from "./if-there.ts";
import { untilTrue } from "./until-true.ts";

/** In the namespace of the process. */
export function isListening({ pid }: { pid: number }, path: string): boolean {
  const listening = /^\S+ \S+ \S+ 00010000 \S+ 01 +\d+ (.*)$/gm;
  return [...textOf(`/proc/${pid}/net/unix`).matchAll(listening)].some(([, found]) => found === path);
}

export async function untilListening(where: { pid: number }, path: string): Promise<void> {
  await untilTrue(() => isListening(where, path), Boolean);
}
