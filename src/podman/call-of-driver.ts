/** Which calls of this program are those of a driver of podman's networks (netavark's plugin API 1.0.0). */

/** src/native/launch.h has those that read stdin: all but `info`. */
export const DRIVER_VERBS = ["create", "info", "setup", "teardown"] as const;
export type DriverVerb = (typeof DRIVER_VERBS)[number];

/**
 * Whatever the driver is called: with at most a namespace's path, and a document on stdin. People who type these words mean
 * something else.
 */
export function isCallOfDriver([verb, ...operands]: readonly string[]): boolean {
  if (!DRIVER_VERBS.some((known) => known === verb)) return false;
  if (operands.length > 1 || operands.some((operand) => !operand.startsWith("/"))) return false;
  const { isTerminal } = require("../ffi/terminal.ts") as typeof import("../ffi/terminal.ts");
  return verb === "info" || !isTerminal(0);
}
