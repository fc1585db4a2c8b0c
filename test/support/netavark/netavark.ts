/** Calls the built program as netavark: by a link of that name, with JSON on stdin. */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Machine, RunOptions } from "../machine.ts";
import { type Answer, answerOf, link, PATCHBAY } from "../plugins.ts";

/** Debian's netavark and aardvark-dns are here. */
export const HELPERS = "/usr/lib/podman";

let linked: string | undefined;

/** The link. */
export function netavarkProgram(): string {
  if (linked !== undefined) return linked;
  const directory = resolve(PATCHBAY, "../test-netavark"), path = `${directory}/netavark`;
  mkdirSync(directory, { recursive: true });
  link(path);
  return linked = path;
}

/** `input` is an object, or the exact text of stdin. */
export async function netavark(
  machine: Machine,
  args: readonly string[],
  input?: unknown,
  options: RunOptions = {},
): Promise<Answer> {
  const stdin = input === undefined || typeof input === "string" ? input : JSON.stringify(input);
  return answerOf(await machine.run([netavarkProgram(), ...args], { ...options, stdin }));
}
