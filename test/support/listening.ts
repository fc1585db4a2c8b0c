/**
 * Who listens at a path, of what is in a process's network namespace. The file alone does not tell: a daemon binds its socket
 * before it listens, and connections are refused until then; and it stays when nobody listens any more.
 */
import { existsSync, readFileSync } from "node:fs";
import { untilTrue } from "./resident-status.ts";

export function isListening({ pid }: { pid: number }, path: string): boolean {
  const table = `/proc/${pid}/net/unix`, listening = /^\S+ \S+ \S+ 00010000 \S+ 01 +\d+ (.*)$/gm;
  if (!existsSync(table)) return false;
  return [...readFileSync(table, "utf8").matchAll(listening)].some(([, found]) => found === path);
}

export async function untilListening(where: { pid: number }, path: string): Promise<void> {
  await untilTrue(() => isListening(where, path), Boolean);
}
