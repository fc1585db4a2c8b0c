/**
 * Calls that a resident leaves to the caller's own process, decided before the first effect: those that may wait for
 * others, and those that are about the process itself.
 */
import { field, isObject, parseDocument } from "../cni/json.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { LeftToCaller } from "../ffi/calls.ts";
import { variable } from "../ffi/environment.ts";
import { exists } from "../ffi/files.ts";
import { hasContent } from "../ffi/kept-open.ts";
import { SYSTEM_BUS_SOCKET } from "../firewalld/bus.ts";
import { FAMILIES } from "../iptables/rule.ts";
import { legacyTablesFile } from "../iptables/which-iptables.ts";
import { loadPlugin, pluginNamed } from "../plugins/table.ts";
import type { Network } from "../runtime/conf/network.ts";
import type { Runtime } from "../runtime/plugin-call.ts";

/** Commands that change the installed program, or stay. */
const OWN_COMMANDS = new Set(["dhcp", "install", "serve"]);
/** Commands that look at everything that is recorded. */
const COMMANDS_ON_EVERYTHING = new Set(["inspect", "repair"]);

/**
 * Returns why the call is not served, or undefined. The position of the caller's stdin stays where it is: a caller that
 * has waited too long reads it at the same time.
 */
export function reasonToDecline(
  calledBy: string,
  argv: readonly string[],
  readStdin: () => Uint8Array,
): string | undefined {
  if (variable("DBUS_SYSTEM_BUS_ADDRESS") !== undefined) return "bus";
  // netavark waits for plugins, and for others' locks while they start aardvark-dns.
  if (calledBy === "netavark") return "netavark";
  const name = pluginNamed(calledBy);
  if (name === undefined) return reasonOfCommand(argv);
  const command = variable("CNI_COMMAND");
  if (command === "VERSION") return undefined;
  try {
    const document = parseDocument(new TextDecoder().decode(readStdin()), "");
    return isObject(document) ? reasonOfPlugin(name, document, variable("CNI_PATH") ?? "") : undefined;
  } catch {
    // The call itself says what is wrong.
    return undefined;
  }
}

/** The networks of other commands are examined when they are loaded. */
function reasonOfCommand(argv: readonly string[]): string | undefined {
  if (argv.some((word) => OWN_COMMANDS.has(word))) return "command";
  // The launcher hands stdin over when the command comes first (src/native/launch.h).
  if (argv[1]?.startsWith("-") && argv.includes("hook")) return "command";
  if (!argv.some((word) => COMMANDS_ON_EVERYTHING.has(word))) return undefined;
  return exists(SYSTEM_BUS_SOCKET) ? "bus" : hasLegacyTables() ? "legacy iptables" : undefined;
}

/** Examines a network of the runtime, whose own plugins all run in this process. */
export function leaveNetworkThatWaits({ plugins }: Network, { pluginPath }: Runtime): void {
  for (const { type, config } of plugins) {
    const reason = isForeign(type, pluginPath) ? "foreign plugin" : reasonOfPlugin(type, config, pluginPath);
    if (reason !== undefined) throw new LeftToCaller(reason);
  }
}

function reasonOfPlugin(name: string, document: Record<string, unknown>, path: string): string | undefined {
  const ipam = field(document, "ipam"), type = isObject(ipam) ? field(ipam, "type") : undefined;
  const ipamType = typeof type === "string" && type !== "" ? type : undefined;
  if (ipamType !== undefined && isForeign(ipamType, path)) return "foreign plugin";
  const types = ipamType === undefined ? [name] : [name, ipamType];
  return types.flatMap((each) => loadPlugin(each)?.mayWaitFor?.(document) ?? []).find(isHere);
}

/** Whether this host has what a call may wait for. */
function isHere(awaited: string): boolean {
  if (awaited === "bus") return exists(SYSTEM_BUS_SOCKET);
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
