/**
 * The result cache: a record of every attachment for later DEL, CHECK and GC.
 *
 * Paths, format and modes are libcni's ("cniCacheV1"), because container engines read each other's records, and ours.
 * Two things differ: records are replaced atomically, and a record of another attachment is ignored. Names and IDs may
 * contain the "-" that joins them in the file's name, so two attachments can have the same file.
 */
import { CniError, errorText, INTERNAL, IO_FAILURE } from "../cni/error.ts";
import { foldKey, isObject } from "../cni/json.ts";
import type { Owner } from "../contract/owner.ts";
import { exists, listDirectory } from "../ffi/files.ts";
import { fromUtf8, utf8 } from "../ffi/libc.ts";
import { RecordFile } from "../process/record-file.ts";
import {
  isTrustedDirectory,
  judgeStateDirectory,
  readTrustedState,
  tryStateDirectory,
} from "../process/state-file.ts";
import { warn } from "../process/warn.ts";
import { containerNumber } from "./lock.ts";

export interface CacheRecord extends Owner {
  /** Empty when neither the record nor its result says it. */
  netnsPath: string;
  /** CNI_ARGS as pairs; undefined when the record has none. */
  cniArgs: readonly (readonly [key: string, value: string])[] | undefined;
  capabilityArgs: Readonly<Record<string, unknown>> | undefined;
  /** The network's configuration as it was read. */
  config: string;
  /** The final result of ADD in the version it was given in; undefined when there is none. */
  result: Readonly<Record<string, unknown>> | undefined;
}

/** What stands in the file of an attachment. */
export type Cached =
  | { state: "absent" }
  /** Torn, or written by a library before 0.7, when the file held a bare result. */
  | { state: "legacy"; text: string }
  /** Another attachment's, with which this one shares the file's name. */
  | { state: "foreign" }
  | { state: "present"; record: CacheRecord };

/** The holder of the container's lock writes it. */
export function recordFile(cacheDirectory: string, key: Owner): RecordFile {
  const { network, containerId, ifName } = key;
  if (network === "" || containerId === "" || ifName === "") {
    throw new CniError(
      INTERNAL,
      `cache file path requires network name ("${network}"), container ID ("${containerId}"), ` +
        `and interface name ("${ifName}")`,
    );
  }
  const draft = `.patchbay-${containerNumber(containerId).toString(16)}.tmp`;
  return new RecordFile(resultsIn(cacheDirectory), fileOf(key), draft);
}

function fileOf({ network, containerId, ifName }: Owner): string {
  return `${network}-${containerId}-${ifName}`;
}

/** libcni makes it with mode 0700. Where a group may write to it, records are still judged each. */
function resultsIn(cacheDirectory: string): string {
  return `${cacheDirectory}/results`;
}

/** Before ADD makes anything. Without a record of an earlier ADD, it would undo that one when it fails. */
export function refuseUntrustedCache(cacheDirectory: string): void {
  judgeStateDirectory(resultsIn(cacheDirectory), "group");
}

/** For those who ask whether ADD would work: throws when it could write no record. Changes nothing. */
export function requireCache(cacheDirectory: string): void {
  refuseUntrustedCache(cacheDirectory);
  const directory = resultsIn(cacheDirectory);
  try {
    tryStateDirectory(directory);
  } catch (cause) {
    throw new CniError(IO_FAILURE, `no results can be kept in ${directory}`, errorText(cause), { cause });
  }
}

export function writeCache(cacheDirectory: string, record: CacheRecord): void {
  const file = recordFile(cacheDirectory, record);
  const text = JSON.stringify({
    kind: "cniCacheV1",
    containerId: record.containerId,
    config: utf8(record.config).toBase64(),
    ifName: record.ifName,
    networkName: record.network,
    netns: record.netnsPath || undefined,
    cniArgs: record.cniArgs?.length ? record.cniArgs : undefined,
    capabilityArgs: Object.keys(record.capabilityArgs ?? {}).length > 0 ? record.capabilityArgs : undefined,
    result: record.result,
  });
  // It is not synced: attachments do not survive a reboot, and our DEL works without a record.
  file.replace(text);
}

export function readCache(cacheDirectory: string, key: Owner): Cached {
  let text: string | undefined;
  try {
    text = recordFile(cacheDirectory, key).read();
  } catch {
    // DEL must work without a record.
  }
  if (text === undefined) return { state: "absent" };
  const record = decodeRecord(parseOrUndefined(text));
  if (record === undefined) return { state: "legacy", text };
  const isSame = record.network === key.network && record.containerId === key.containerId &&
    record.ifName === key.ifName;
  return isSame ? { state: "present", record } : { state: "foreign" };
}

/** Removes the attachment's record, but not another attachment's in the same file. Warns where it cannot. */
export function removeCache(cacheDirectory: string, key: Owner): void {
  if (readCache(cacheDirectory, key).state === "foreign") return;
  const file = recordFile(cacheDirectory, key);
  try {
    file.remove();
  } catch (error) {
    // It does no harm: DEL of what is gone succeeds, also with it.
    if (exists(file.path)) warn(`${file.path} stays, and tells of an attachment that is gone: ${errorText(error)}`);
  }
}

/**
 * Every attachment with a readable record, or those of one container, sorted by file name. A record in a file of another
 * name, such as a copy, does not count: nobody reads it by its attachment, or removes it. Throws when the directory cannot be
 * read.
 */
export function listCache(cacheDirectory: string, containerId?: string): CacheRecord[] {
  const isMeant = (text: string) => containerId === undefined || text.includes(`-${containerId}-`);
  const records = cacheFiles(cacheDirectory).filter(isMeant).flatMap((name) => {
    const record = readCacheFile(cacheDirectory, name);
    return record !== undefined && fileOf(record) === name ? [record] : [];
  });
  return containerId === undefined ? records : records.filter((record) => record.containerId === containerId);
}

export function cacheFiles(cacheDirectory: string): string[] {
  try {
    const directory = resultsIn(cacheDirectory), names = listDirectory(directory);
    return names.length > 0 && isTrustedDirectory(directory, "group") ? names : [];
  } catch (error) {
    throw new CniError(IO_FAILURE, `cannot list cached attachments: ${(error as Error).message}`, "", {
      cause: error,
    });
  }
}

/** The record in the file of this name; undefined when there is none that can be read. */
export function readCacheFile(cacheDirectory: string, name: string): CacheRecord | undefined {
  try {
    const record = decodeRecord(parseOrUndefined(readTrustedState(`${resultsIn(cacheDirectory)}/${name}`) ?? ""));
    return record === undefined || record.network === "" || record.ifName === "" ? undefined : record;
  } catch {
    return undefined;
  }
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined when the document is not a complete record of this format. */
function decodeRecord(document: unknown): CacheRecord | undefined {
  if (!isObject(document)) return undefined;
  const fields: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(document)) fields[foldKey(key)] = value;
  if (fields["kind"] !== "cniCacheV1") return undefined;
  const text = (key: string) => (typeof fields[key] === "string" ? fields[key] : "");
  let config: string;
  try {
    config = fromUtf8(Uint8Array.fromBase64(text("config")));
  } catch {
    return undefined;
  }
  const { cniargs, capabilityargs, result } = fields, ifName = text("ifname");
  return {
    network: text("networkname"),
    containerId: text("containerid"),
    ifName,
    netnsPath: text("netns") || sandboxIn(result, ifName),
    cniArgs: isPairs(cniargs) ? cniargs : undefined,
    capabilityArgs: isObject(capabilityargs) ? capabilityargs : undefined,
    config,
    result: isObject(result) ? result : undefined,
  };
}

/** Libraries before 1.2 write no path, but plugins do, in results since 0.3.0. */
function sandboxIn(result: unknown, ifName: string): string {
  const links: unknown = isObject(result) ? result["interfaces"] : undefined;
  const inside = Array.isArray(links) ? links.filter((link) => isObject(link) && link["sandbox"]) : [];
  const sandbox: unknown = (inside.findLast(({ name }) => name === ifName) ?? inside[0])?.sandbox;
  return typeof sandbox === "string" ? sandbox : "";
}

function isPairs(value: unknown): value is [string, string][] {
  return Array.isArray(value) &&
    value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === "string"));
}
