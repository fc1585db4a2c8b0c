/** Calls the built program as netavark: by a link of that name, with JSON on stdin. */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { resolve } from "node:path";
import type { Machine, Outcome, RunOptions } from "../machine.ts";
import { PATCHBAY } from "../plugins.ts";

/** Debian's netavark and aardvark-dns are here. */
export const HELPERS = "/usr/lib/podman";

let linked: string | undefined;

/** The link. Test files run side by side, so another one may have made it. */
export function netavarkProgram(): string {
  if (linked !== undefined) return linked;
  const directory = resolve(PATCHBAY, "../test-netavark"), path = `${directory}/netavark`;
  mkdirSync(directory, { recursive: true });
  try {
    symlinkSync(PATCHBAY, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  return linked = path;
}

export interface NetavarkAnswer extends Outcome {
  /** stdout as JSON, or undefined when it is not JSON. */
  // deno-lint-ignore no-explicit-any
  json: any;
}

/** `input` is an object, or the exact text of stdin. */
export async function netavark(
  machine: Machine,
  args: readonly string[],
  input?: unknown,
  options: RunOptions = {},
): Promise<NetavarkAnswer> {
  const stdin = input === undefined || typeof input === "string" ? input : JSON.stringify(input);
  const outcome = await machine.run([netavarkProgram(), ...args], {
    ...options,
    ...stdin !== undefined && { stdin },
  });
  return { ...outcome, json: parse(outcome.stdout) };
}

function parse(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
