/** A program that a test runs to its end, outside of a machine. */
import type { Outcome } from "./machine.ts";

export function runToEnd(
  words: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; stdin?: Uint8Array } = {},
): Outcome {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], { ...options, stdout: "pipe", stderr: "pipe" });
  return { code: exitCode, stdout: String(stdout), stderr: String(stderr) };
}
