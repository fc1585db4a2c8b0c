/**
 * Whether somebody listens at a path. A daemon binds its socket before it listens: a file that is there is not enough,
 * and a connection would be refused.
 */
import type { Machine } from "./machine.ts";

/** As a command of the shell, whose status tells. Column four of the kernel's table is a listening socket's flag. */
export const listensAt = (path: string) => `grep -q ' 00010000 .* ${path}$' /proc/net/unix`;

export const untilListening = (path: string) => `until ${listensAt(path)}; do sleep 0.01; done`;

export async function isListening(machine: Pick<Machine, "run">, path: string): Promise<boolean> {
  return (await machine.run(["sh", "-c", listensAt(path)])).code === 0;
}
