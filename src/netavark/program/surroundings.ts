/** What netavark's options and environment say about a call. */
import { readInteger } from "../../documents/integer.ts";
import { variable } from "../../ffi/environment.ts";
import type { ParsedOptions } from "./arguments.ts";

export interface Surroundings {
  /** Where state is, also that of aardvark-dns. */
  readonly configDirectory: string;
  readonly isRootless: boolean;
  /** May be empty, or lead nowhere: podman passes what it found. */
  readonly aardvarkBinary: string;
  readonly pluginDirectories: readonly string[];
  /** As it was asked for. */
  readonly firewallDriver: string | undefined;
  /** Where aardvark-dns listens. Throws when the variable is no port. */
  readonly dnsPort: number;
}

const AARDVARK = "/usr/libexec/podman/aardvark-dns";
const CONFIG = "/run/containers/networks";
/** podman before 4.5 does not say where plugins are. */
const PLUGIN_DIRECTORIES = [
  "/usr/local/libexec/netavark",
  "/usr/libexec/netavark",
  "/usr/local/lib/netavark",
  "/usr/lib/netavark",
];
const DNS_PORT = 53, PORT_MAX = 65535;

export function surroundingsOf({ values }: ParsedOptions): Surroundings {
  const value = (name: string) => values.get(name)?.[0];
  return {
    configDirectory: value("config") ?? CONFIG,
    isRootless: value("rootless") === "true",
    aardvarkBinary: value("aardvark-binary") ?? AARDVARK,
    pluginDirectories: values.get("plugin-directory") ?? PLUGIN_DIRECTORIES,
    firewallDriver: value("firewall-driver") ?? (variable("NETAVARK_FW") || undefined),
    get dnsPort() {
      const text = variable("NETAVARK_DNS_PORT");
      if (text === undefined) return DNS_PORT;
      const port = readInteger(text, 0, PORT_MAX);
      if (typeof port === "string") throw new Error(`Invalid NETAVARK_DNS_PORT ${text}: ${port}`);
      return port;
    },
  };
}

/** Throws unless the option was given, with a path that can be used. */
export function requireConfig({ values }: ParsedOptions, command: string): void {
  const path = values.get("config")?.[0];
  if (path === undefined) throw new Error(`--config not specified but required for netavark ${command}`);
  // Arguments reach this program as text; bytes that are none have become this character.
  if (path.includes("\ufffd")) {
    throw new Error(`--config ${JSON.stringify(path)}: is not UTF-8; give the path of a link to the directory`);
  }
}
