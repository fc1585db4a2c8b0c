/**
 * Warnings about keys that look misspelt in the file of a network that is about to be used. Plugins have to ignore
 * unknown keys, so nothing else reports them. `isThorough`: also about keys that only another plugin knows.
 */
import { foldKey } from "../../cni/json.ts";
import { KNOWN_VERSIONS } from "../../cni/versions.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { knownKeys } from "../../runtime/lint/known-keys.gen.ts";
import { printToStderr } from "../../process/output.ts";

export function warnOfMisspellings(network: Network, pluginPath: string, isThorough = false): void {
  const { path, plugins, source, cniVersion } = network;
  if (path === undefined) return;
  // Loading the schemas takes as long as the rest of ADD, and most files have only known keys. Loops, and no set, for the
  // same reason: docs/decisions/0005.
  let isKnown = (cniVersion === "" || KNOWN_VERSIONS.includes(cniVersion)) && hasKnownKeys(JSON.parse(source));
  for (const { config } of plugins) isKnown &&= hasKnownKeys(config);
  if (isKnown && !isThorough) return;
  const { describeFinding, isMisplaced, lintNetwork } = require(
    "../../runtime/lint/lint.ts",
  ) as typeof import("../../runtime/lint/lint.ts");
  try {
    for (const finding of lintNetwork(path, pluginPath)) {
      const isMisspelt = finding.severity === "warning" && finding.meant !== undefined;
      if (isMisspelt || isMisplaced(finding) || finding.key === "cniVersion") printToStderr(describeFinding(finding));
    }
  } catch {
    // A file that lint cannot check may still work.
  }
}

function hasKnownKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const isList = Array.isArray(value);
  for (const key in value) {
    // Sysctls and the runtime's own keys have a dot, and editors go by "$schema".
    const isKnown = isList || knownKeys.includes(` ${foldKey(key)} `) || key.includes(".") || key === "$schema";
    if (!isKnown || !hasKnownKeys((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}
