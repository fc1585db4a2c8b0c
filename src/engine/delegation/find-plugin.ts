/**
 * Finds the program of a plugin type: the first file of that name in CNI_PATH (CNI spec 1.1.0, "Section 4: Plugin
 * Delegation"). When that file is this same binary, the plugin runs in process.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { type FileIdentity, identify, isRegularFile } from "../../ffi/files.ts";
import type { UntrustedFile } from "../../process/trusted-executable.ts";
import { loadPlugin, loadRecorded, pluginNamed, pluginNames } from "../../plugins/table.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";

// Loaded only for foreign plugins.
const trusted = () =>
  require("../../process/trusted-executable.ts") as typeof import("../../process/trusted-executable.ts");

export type FoundPlugin = { own: PluginDefinition<PluginConfig> } | { path: string };

/**
 * An empty search path means the plugins in this binary and no others. Only our own runtime passes one: a plugin called
 * without CNI_PATH is rejected before it delegates.
 */
export function findPlugin(type: string, searchPath: string): FoundPlugin {
  if (type === "") throw new CniError(INTERNAL, "no plugin name provided");
  if (type.includes("/")) throw new CniError(INTERNAL, `invalid plugin name: ${type}`);
  if (searchPath === "") {
    const own = loadPlugin(type);
    if (own !== undefined) return { own };
    throw new CniError(INTERNAL, "no paths provided", `"${type}" is not part of patchbay`, {
      nextStep: () => elsewhereOrAnother(type),
    });
  }
  const directories = searchPath.split(":");
  for (const directory of directories) {
    // An empty entry would mean the working directory, which is not a plugin directory.
    if (directory === "") continue;
    const path = directory.endsWith("/") ? `${directory}${type}` : `${directory}/${type}`;
    const file = regularFile(path);
    if (file === undefined) continue;
    if (!isThisBinary(path, file)) {
      requireTrusted(path);
      return { path };
    }
    const own = loadPlugin(type);
    if (own !== undefined) return { own };
    throw new CniError(INTERNAL, `invalid plugin name: ${type}`, `${path} is patchbay, which has no such plugin`);
  }
  throw new CniError(INTERNAL, `failed to find plugin "${type}" in path [${directories.join(" ")}]`);
}

function elsewhereOrAnother(type: string): string {
  const { closestName } = require("../../cni/spelling.ts") as typeof import("../../cni/spelling.ts");
  const meant = closestName(type, pluginNames), question = meant === undefined ? "" : `did you mean "${meant}"? `;
  return `${question}--plugin-path or $CNI_PATH names the directories of other plugins`;
}

/**
 * The plugin that knows what a type makes. A plain name is the reference plugin's, whoever's the program is. A name with a
 * prefix is ours only when the program is: `accelerated-bridge` is somebody else's.
 */
export function knownPlugin(type: string, searchPath: string): PluginDefinition<PluginConfig> | undefined {
  const name = pluginNamed(type);
  if (name === undefined || name === type) return loadRecorded(type);
  try {
    const found = findPlugin(type, searchPath);
    return "own" in found ? found.own : undefined;
  } catch {
    return undefined;
  }
}

/** Judges the file before anything is made for the plugin. `runTrusted` judges it again. */
function requireTrusted(path: string): void {
  const { withJudged, NOT_EVERYBODYS, UntrustedFile } = trusted();
  try {
    withJudged(path, NOT_EVERYBODYS, () => {});
  } catch (error) {
    throw error instanceof UntrustedFile ? untrustedPlugin(error) : error;
  }
}

export function untrustedPlugin({ path, why, nextStep }: UntrustedFile): CniError {
  return new CniError(INTERNAL, `no plugin is run from ${path}: ${why}`, nextStep);
}

function regularFile(path: string): FileIdentity | undefined {
  try {
    const file = identify(path);
    return isRegularFile(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

let thisBinary: FileIdentity | undefined;

let isThisBinary = (_path: string, file: FileIdentity): boolean => {
  // /proc/self/exe stays the file that we were started from, even after an upgrade replaced it.
  thisBinary ??= identify("/proc/self/exe");
  return file.id === thisBinary.id;
};

/** For a library, which is no file of its own: which program has the same plugins in it. */
export function recognizeOwn(isOwn: (path: string) => boolean): void {
  isThisBinary = isOwn;
}
