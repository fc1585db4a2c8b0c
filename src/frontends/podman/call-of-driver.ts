/** Which calls of this program are those of a driver of podman's networks (netavark's plugin API 1.0.0). */

export const VERBS_WITH_STDIN = ["create", "setup", "teardown"] as const;
const DRIVER_VERBS = [...VERBS_WITH_STDIN, "info"] as const;
export type DriverVerb = (typeof DRIVER_VERBS)[number];

export interface DriverCall {
  readonly verb: DriverVerb;
  readonly netnsPath: string | undefined;
}

/**
 * A driver is called with at most a namespace's path, and gets a document on stdin. A person who types these words at a
 * terminal means something else.
 */
export function driverCallOf([word, ...operands]: readonly string[]): DriverCall | undefined {
  const verb = DRIVER_VERBS.find((known) => known === word);
  if (verb === undefined) return undefined;
  if (operands.length > 1 || operands.some((operand) => !operand.startsWith("/"))) return undefined;
  const { isTerminal } = require("../../ffi/terminal.ts") as typeof import("../../ffi/terminal.ts");
  return verb === "info" || !isTerminal(0) ? { verb, netnsPath: operands[0] } : undefined;
}
