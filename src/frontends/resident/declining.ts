/**
 * Calls that a resident leaves to the caller's own process, decided before the first effect: those that may wait for
 * others, and those that mean the process itself. Commands of the runtime say it by `runsByItself`
 * (src/frontends/cli/command.ts).
 */
import { isObject, parseDocument } from "../../cni/json.ts";
import { findPlugin } from "../../engine/delegation/find-plugin.ts";
import { ipamTypeOf } from "../../engine/plugin-parts.ts";
import type { Awaited } from "../../contract/plugin.ts";
import type { PluginToCall } from "../../process/calls.ts";
import { variable } from "../../ffi/environment.ts";
import { hasContent } from "../../process/kept-open.ts";
import { mayFirewalldRun } from "../../interop/firewalld/client.ts";
import { FAMILIES } from "../../interop/iptables/rule.ts";
import { legacyTablesFile } from "../../ffi/xtables/legacy-tables.ts";
import { loadRecorded, pluginNamed } from "../../plugins/table.ts";
import { nameOf, type Request } from "./protocol.ts";

/** Variables with paths. */
const PATHS = ["CNI_NETNS", "CNI_PATH", "NETCONFPATH", "PATCHBAY_STATE_DIR", "XDG_RUNTIME_DIR"];
/** They lead each process to files of its own. */
const OF_THE_PROCESS = /\/proc\/(?:self|thread-self)\b|\/dev\/(?:fd|stdin|stdout|stderr)\b/;
/** The first argument of what is no call: a worker would not come back. */
const STAYING = new Set(["serve", "daemon"]);

/**
 * Returns why the call is not served, or undefined. Commands of the runtime are declined later, when the command and its
 * networks are known. The position of the caller's stdin stays where it is: a caller that has waited too long reads it at the
 * same time.
 */
export function reasonToDecline(
  request: Pick<Request, "argv">,
  readStdin: () => Uint8Array,
): string | undefined {
  const calledBy = nameOf(request), given = [...request.argv, ...PATHS.map((name) => variable(name) ?? "")];
  if (STAYING.has(request.argv[1] ?? "")) return "command";
  if (given.some((path) => OF_THE_PROCESS.test(path))) return "path of the process";
  if (variable("DBUS_SYSTEM_BUS_ADDRESS") !== undefined) return "bus";
  const name = pluginNamed(calledBy);
  if (name === undefined || variable("CNI_COMMAND") === "VERSION") return undefined;
  try {
    const document = parseDocument(new TextDecoder().decode(readStdin()), "");
    return isObject(document) ? reasonOfPlugin(name, document, variable("CNI_PATH") ?? "") : undefined;
  } catch {
    // The call itself says what is wrong.
    return undefined;
  }
}

/** Why the caller runs these plugins itself: one may wait, or is a program of others. All our own run in this process. */
export function reasonToKeep(plugins: readonly PluginToCall[], pluginPath: string): string | undefined {
  for (const { type, config } of plugins) {
    const reason = isForeign(type, pluginPath) ? "foreign plugin" : reasonOfPlugin(type, config, pluginPath);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function reasonOfPlugin(name: string, document: Record<string, unknown>, path: string): string | undefined {
  const ipamType = ipamTypeOf(document);
  if (ipamType !== "" && isForeign(ipamType, path)) return "foreign plugin";
  const types = ipamType === "" ? [name] : [name, ipamType];
  return types.flatMap((each) => loadRecorded(each)?.mayWaitFor?.(document) ?? []).find(isHere);
}

/** Whether this host has what a call may wait for. */
function isHere(awaited: Awaited): boolean {
  if (awaited === "firewalld") return mayFirewalldRun();
  return awaited !== "legacy iptables" || hasLegacyTables();
}

/** A plugin that is not found is not foreign: the call says so. */
function isForeign(type: string, path: string): boolean {
  try {
    return "path" in findPlugin(type, path);
  } catch {
    return false;
  }
}

/** Programs that change these tables wait for one lock. */
function hasLegacyTables(): boolean {
  return FAMILIES.some((family) => hasContent(legacyTablesFile(family)));
}
