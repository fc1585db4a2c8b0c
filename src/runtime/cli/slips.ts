/**
 * Before a network is used: what its file has that looks misspelt. Plugins must ignore keys they do not know; whoever
 * types a command did not mean them.
 */
import { foldKey } from "../../cni/json.ts";
import { KNOWN_VERSIONS } from "../../cni/versions.ts";
import type { Network } from "../conf.ts";
import { knownKeys } from "../lint/known-keys.gen.ts";
import { complain } from "./print.ts";

export function tellSlips({ path, plugins, source, cniVersion }: Network, pluginPath: string): void {
  if (path === undefined) return;
  // Most files have no unknown key, and then the schemas are not loaded: it would take as long as the rest of ADD. For
  // the same reason there are loops here, and no set (docs/decisions/0005).
  let isKnown = (cniVersion === "" || KNOWN_VERSIONS.includes(cniVersion)) && hasKnownKeys(JSON.parse(source));
  for (const { config } of plugins) isKnown &&= hasKnownKeys(config);
  if (isKnown) return;
  const { lintNetwork } = require("../lint/lint.ts") as typeof import("../lint/lint.ts");
  const { describeFinding } = require("./lint.ts") as typeof import("./lint.ts");
  try {
    for (const finding of lintNetwork(path, pluginPath)) {
      const isSlip = finding.severity === "warning" && finding.meant !== undefined;
      if (isSlip || finding.key === "cniVersion") complain(describeFinding(finding));
    }
  } catch {
    // What cannot be judged is no reason not to add.
  }
}

function hasKnownKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  const isList = Array.isArray(value);
  for (const key in value) {
    // With a dot in it, it is a sysctl's name, or a key of the runtime's.
    const isKnown = isList || knownKeys.includes(` ${foldKey(key)} `) || key.includes(".");
    if (!isKnown || !hasKnownKeys((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}
