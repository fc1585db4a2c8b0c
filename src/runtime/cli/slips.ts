/**
 * Before a network is used: what its file has that looks misspelt. Plugins must ignore keys they do not know; whoever
 * types a command did not mean them.
 */
import { foldKey, isObject } from "../../cni/json.ts";
import { KNOWN_VERSIONS } from "../../cni/versions.ts";
import type { Network } from "../conf.ts";
import { knownKeys } from "../lint/known-keys.gen.ts";
import { complain } from "./print.ts";

export function tellSlips({ path, plugins, source, cniVersion }: Network, pluginPath: string): void {
  if (path === undefined) return;
  // Most files have no unknown key, and then the schemas are not loaded: it would take as long as the rest of ADD.
  const known = new Set(knownKeys.split(" "));
  const isVersionKnown = cniVersion === "" || KNOWN_VERSIONS.includes(cniVersion);
  if (isVersionKnown && isKnown(JSON.parse(source), known) && plugins.every(({ config }) => isKnown(config, known))) {
    return;
  }
  const { lintNetwork }: typeof import("../lint/lint.ts") = require("../lint/lint.ts");
  const { describeFinding }: typeof import("./lint.ts") = require("./lint.ts");
  for (const finding of lintNetwork(path, pluginPath)) {
    const isSlip = finding.severity === "warning" && finding.meant !== undefined;
    if (isSlip || finding.key === "cniVersion") complain(describeFinding(finding));
  }
}

function isKnown(value: unknown, known: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.every((item) => isKnown(item, known));
  // With a dot in it, it is a sysctl's name, or a key of the runtime's.
  return !isObject(value) ||
    Object.keys(value).every((key) => (known.has(foldKey(key)) || key.includes(".")) && isKnown(value[key], known));
}
