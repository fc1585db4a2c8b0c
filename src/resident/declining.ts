/**
 * Calls that a resident leaves to the caller's own process, decided before the first effect: those that may wait for
 * others, and those that are about the process itself.
 */
import { pluginNames } from "../plugins/table.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import { variable } from "../ffi/environment.ts";
import { exists, readAll, readTextFile } from "../ffi/files.ts";

/** Of the runtime: they run no foreign plugin and read nothing of the terminal. */
const SERVED_COMMANDS = new Set(["networks", "ls", "version", "--version", "help", "--help", "-h", "ipam"]);

/** Why the call is not served, or undefined. Reads stdin of a plugin, and leaves it where it was read to. */
export function whyNotHere(name: string, argv: readonly string[]): string | undefined {
  if (!pluginNames.includes(name)) return SERVED_COMMANDS.has(argv[1] ?? "") ? undefined : "command";
  if (variable("DBUS_SYSTEM_BUS_ADDRESS") !== undefined) return "bus";
  const command = variable("CNI_COMMAND");
  if (command === "VERSION") return undefined;
  try {
    const document = parseDocument(new TextDecoder().decode(readAll(0, undefined, "stdin")), "");
    return isObject(document) ? whyNotConfigured(name, document) : undefined;
  } catch {
    // What is wrong is said as everywhere.
    return undefined;
  }
}

const OURS = new Set<unknown>([undefined, ...pluginNames]);

function whyNotConfigured(name: string, document: Record<string, unknown>): string | undefined {
  const ipam = field(document, "ipam"), delegate = field(document, "delegate");
  const types = [ipam, delegate].map((part) => isObject(part) ? field(part, "type") : undefined);
  if (types.some((type) => type !== "" && !OURS.has(type))) return "foreign plugin";
  if (name === "flannel") return "delegate";
  if (field(document, "enabledad") === true) return "duplicate address detection";
  if (field(document, "selinuxContext")) return "SELinux";
  if (name === "firewall" && exists(SYSTEM_BUS)) return "bus";
  return LEGACY_TABLES.some((path) => readTextFile(path)) ? "legacy iptables" : undefined;
}

const SYSTEM_BUS = "/run/dbus/system_bus_socket";
/** Whoever changes these waits for the lock of all that do. */
const LEGACY_TABLES = ["/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"];
