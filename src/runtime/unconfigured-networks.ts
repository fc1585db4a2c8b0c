/** CNI networks that no file configures any more, while something of them is attached or leased. podman's are left out. */
import { entriesIn, exists } from "../ffi/files.ts";
import { DEFAULT_DATA_DIRECTORY } from "../ipam/go-directory.ts";
import { leasesOfPools } from "../ipam/pool-directories.ts";
import { listLeases } from "../ipam/take-over.ts";
import { isNetavarkDriver } from "../plugins/table.ts";
import type { Runtime } from "./plugin-call.ts";
import { knownAttachments } from "./records.ts";

export interface UnconfiguredNetwork {
  readonly name: string;
  readonly attachments: number;
  /** In the directories where host-local and pools keep them by default. */
  readonly leases: number;
}

export function unconfiguredNetworks(runtime: Runtime, configured: readonly string[]): UnconfiguredNetwork[] {
  const ofCni = knownAttachments(runtime).filter(({ ledgers }) =>
    !ledgers.some(({ header }) => isNetavarkDriver(header.plugin))
  );
  const recorded = ofCni.map(({ network }) => network);
  const leasing = exists(DEFAULT_DATA_DIRECTORY)
    ? entriesIn(DEFAULT_DATA_DIRECTORY).filter(({ kind }) => kind === "directory").map(({ name }) => name)
    : [];
  const inPools = leasesOfPools().flatMap(({ network }) => network ?? []);
  const names = [...new Set([...recorded, ...leasing, ...inPools])].filter((name) => !configured.includes(name))
    .sort();
  return names.map((name) => ({
    name,
    attachments: recorded.filter((one) => one === name).length,
    leases: (leasing.includes(name) ? listLeases(`${DEFAULT_DATA_DIRECTORY}/${name}`).length : 0) +
      inPools.filter((one) => one === name).length,
  })).filter(({ attachments, leases }) => attachments + leases > 0);
}
