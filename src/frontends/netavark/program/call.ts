/** One call of netavark, with its arguments read. */
import { variable } from "../../../ffi/environment.ts";
import { readInteger } from "../../../interop/podman-documents/integer.ts";
import { DNS_PORT } from "../../../resources/netavark/shared/dns-port.ts";
import type { ParsedOptions } from "./arguments.ts";

export interface NetavarkCall {
  readonly options: GlobalOptions;
  /** The word after the subcommand; empty when it takes none. */
  readonly operand: string;
  /** The values of an option of the subcommand. */
  values(name: string): readonly string[];
  readonly hasFile: boolean;
  /** stdin, or the file of `--file`. */
  readInput(): Uint8Array;
}

/** The options before the subcommand, with what the environment says instead. */
export interface GlobalOptions {
  /** The directory of all state, also of aardvark-dns. */
  readonly configDirectory: string;
  readonly isRootless: boolean;
  /** May be empty, or the path of no file: podman passes what it found. */
  readonly aardvarkBinary: string;
  readonly pluginDirectories: readonly string[];
  /** As the caller wrote it. */
  readonly firewallDriver: string | undefined;
  /** The port of aardvark-dns. Throws when the variable is not a port. */
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
const PORT_MAX = 65535;

export function globalOptionsOf({ values }: ParsedOptions): GlobalOptions {
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

/** Throws unless --config was given, with a usable path. */
export function requireConfig({ values }: ParsedOptions, command: string): void {
  const path = values.get("config")?.[0];
  if (path === undefined) throw new Error(`--config not specified but required for netavark ${command}`);
  // Arguments reach this program as text, in which bytes that are not UTF-8 have become this character.
  if (path.includes("\ufffd")) {
    throw new Error(`--config ${JSON.stringify(path)}: is not UTF-8; give the path of a link to the directory`);
  }
}
