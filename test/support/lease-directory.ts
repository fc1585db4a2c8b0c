/** A lease directory for one test, with its store, and the files in it as seen without the store. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allocate, type Allocated } from "../../src/ipam/allocator.ts";
import { releaseAddresses } from "../../src/ipam/claims.ts";
import { planRangeSets, type RangeConf, type RangeSet } from "../../src/ipam/range.ts";
import { inStore, leaseOf, type StoreOptions } from "../../src/ipam/store.ts";
import { formatAddress, parseAddress } from "../../src/net/address.ts";

/** In the header of a block (src/ipam/layout.ts). */
const BOOT_ID_AT = 48;

export interface LeaseDirectory extends Disposable {
  readonly path: string;
  readonly options: StoreOptions;
  /** The store's messages to the operator. */
  readonly reports: string[];
  /** Lease files: address → content. */
  files(): Record<string, string>;
}

/** Makes a directory and removes it when disposed. A directory named in the options is used and stays. */
export function leaseDirectory(options: Partial<StoreOptions> = {}): LeaseDirectory {
  const top = options.directory === undefined ? mkdtempSync(join(tmpdir(), "patchbay-leases-")) : undefined;
  const path = options.directory ?? join(top!, "net");
  const reports: string[] = [];
  const report = (note: string) => void reports.push(note);
  return {
    path,
    options: { directory: path, keep: false, quarantineSeconds: 0, report, ...options },
    reports,
    files: () => leaseFiles(path),
    [Symbol.dispose]: () => top === undefined ? undefined : rmSync(top, { recursive: true, force: true }),
  };
}

export function leaseFiles(path: string): Record<string, string> {
  if (!existsSync(path)) return {};
  const files: Record<string, string> = {};
  for (const name of readdirSync(path).filter((name) => parseAddress(name) !== undefined).sort()) {
    try {
      files[name] = readFileSync(join(path, name), "utf8");
    } catch (error) {
      // Another process may have removed the file.
      if ((error as { code?: string }).code !== "ENOENT") throw error;
    }
  }
  return files;
}

/** The path of a block's file: `10.1.0.0-24`. */
export function indexPath({ path }: LeaseDirectory, name: string): string {
  return join(path, ".patchbay", name);
}

/** Makes the index one of an earlier boot, as the machine's next start does. */
export function endBoot(made: LeaseDirectory): void {
  for (const name of readdirSync(join(made.path, ".patchbay"))) {
    if (!/-[0-9]+$/.test(name)) continue;
    const bytes = readFileSync(indexPath(made, name));
    bytes[BOOT_ID_AT]! ^= 0xff;
    writeFileSync(indexPath(made, name), bytes);
  }
}

export function rangeSet(...ranges: (RangeConf | string)[]): RangeSet {
  return planRangeSets([ranges.map((range) => (typeof range === "string" ? { subnet: range } : range))], "1.0.0")[0]!;
}

/** ADD of one range set for the container's eth0. Returns the address. */
export function add(
  { options }: LeaseDirectory,
  set: RangeSet,
  containerId: string,
  rest: { ip?: string; ifName?: string; rangeId?: string } = {},
): string {
  const lease = leaseOf({ containerId, ifName: rest.ifName ?? "eth0" });
  const requested = rest.ip === undefined ? undefined : parseAddress(rest.ip);
  const request = { set, rangeId: rest.rangeId ?? "0", lease, containerId, requested };
  const { address }: Allocated = inStore(options, lease, (store) => allocate(store, request));
  return formatAddress(address);
}

/** DEL of the container's eth0. Returns how many leases it released. */
export function del({ options }: LeaseDirectory, containerId: string, hints: string[] = [], ifName = "eth0"): number {
  return releaseAddresses(options, { containerId, ifName }, hints.map((hint) => parseAddress(hint)!));
}
