/**
 * The supported versions of the CNI specification, their order, and the form of their results.
 *
 * A version is supported when its exact string is listed; order compares the parsed numbers (so "1.1" equals 1.1.0 and
 * still is unsupported). Both are the reference library's rules.
 */
import { CniError, DECODING_FAILURE, INCOMPATIBLE_VERSION } from "./error.ts";
import { field } from "./json.ts";
import { goQuote } from "./quote.ts";

export const KNOWN_VERSIONS: readonly string[] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

export const CURRENT_VERSION = "1.1.0";

/** The version of a configuration or result without `cniVersion`. */
export const UNSTATED_VERSION = "0.1.0";

/** The known versions from `first` on, for plugins that do not support older ones. */
export function versionsSince(first: string): readonly string[] {
  return KNOWN_VERSIONS.slice(KNOWN_VERSIONS.indexOf(first));
}

/**
 * The three forms of results, named by the version that introduced them: `ip4`/`ip6`; a list of `ips`, each with a
 * `version`; the same list without.
 */
export type ResultFamily = "0.1" | "0.3" | "1.0";

/** Undefined for unknown versions. Like in the reference library, the empty string belongs to the first family. */
export function resultFamily(version: string): ResultFamily | undefined {
  switch (version) {
    case "":
    case "0.1.0":
    case "0.2.0":
      return "0.1";
    case "0.3.0":
    case "0.3.1":
    case "0.4.0":
      return "0.3";
    case "1.0.0":
    case "1.1.0":
      return "1.0";
  }
  return undefined;
}

export type VersionNumbers = readonly [major: number, minor: number, micro: number];

/** One to three numbers; missing ones are 0, and the empty text means 0.1.0. Throws a decoding failure. */
export function parseVersion(text: string): VersionNumbers {
  const parts = (text === "" ? UNSTATED_VERSION : text).split(".");
  if (parts.length > 3) {
    throw new CniError(DECODING_FAILURE, `invalid version ${goQuote(text)}: too many parts`);
  }
  return [parsePart(parts[0]!, "major"), parsePart(parts[1] ?? "0", "minor"), parsePart(parts[2] ?? "0", "micro")];
}

function parsePart(part: string, name: string): number {
  if (/^[+-]?[0-9]+$/.test(part)) return Number(part);
  const message = `failed to convert ${name} version part ${goQuote(part)}: not an integer`;
  throw new CniError(DECODING_FAILURE, message);
}

/** Negative, zero or positive, as for sorting. */
export function compareVersions(one: string, other: string): number {
  const a = parseVersion(one), b = parseVersion(other);
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

/** The version of a configuration; "" when it has none. Throws a decoding failure. */
export function configVersion(document: Record<string, unknown>): string {
  const version = field(document, "cniVersion") ?? "";
  if (typeof version === "string") return version;
  const problem = `"cniVersion" must be a string, got ${JSON.stringify(version)}`;
  throw new CniError(DECODING_FAILURE, `decoding version from network config: ${problem}`);
}

/** The version of the specification that introduced a verb. Other verbs exist in every version. */
const verbSince: Record<string, string | undefined> = { CHECK: "0.4.0", GC: "1.1.0", STATUS: "1.1.0" };

/**
 * Rejects a call whose configuration has a version that the plugin does not support, or that does not have the verb yet.
 * `supported` is in ascending order.
 */
export function checkVersions(command: string, configVersion: string, supported: readonly string[]): void {
  const since = verbSince[command];
  if (since !== undefined) {
    if (compareVersions(configVersion, since) < 0) {
      throw new CniError(INCOMPATIBLE_VERSION, `config version does not allow ${command}`);
    }
    const newest = supported[supported.length - 1] ?? "";
    if (compareVersions(newest, configVersion) < 0) {
      throw new CniError(INCOMPATIBLE_VERSION, `plugin version does not allow ${command}`);
    }
  }
  const version = configVersion || UNSTATED_VERSION;
  if (!supported.includes(version)) {
    throw new CniError(
      INCOMPATIBLE_VERSION,
      "incompatible CNI versions",
      `config is ${goQuote(version)}, plugin supports [${supported.map((v) => goQuote(v)).join(" ")}]`,
    );
  }
}
