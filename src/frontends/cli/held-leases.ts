/** The leases of host-local that a command line is about. */
import { DEFAULT_DATA_DIRECTORY } from "../../ipam/go-directory.ts";
import { identify, isDirectory, namesIn } from "../../ffi/files.ts";
import { listLeases } from "../../ipam/take-over.ts";
import type { GivenArguments } from "./command.ts";

export function dataDirOf(given: GivenArguments): string {
  return given.value("data-dir") ?? DEFAULT_DATA_DIRECTORY;
}

export interface HeldLease {
  network: string;
  address: string;
  /** Undefined for a file that names no attachment. */
  containerId?: string;
  ifName?: string;
}

/** Returns the leases of one network, or of all. */
export function heldLeases(given: GivenArguments, network?: string): HeldLease[] {
  const networks = networksWithLeases(given).filter((name) => name === (network ?? name));
  return networks.flatMap((name) =>
    listLeases(`${dataDirOf(given)}/${name}`).map(({ address, owner }) => ({ network: name, address, ...owner }))
  );
}

export function networksWithLeases(given: GivenArguments): string[] {
  const directory = dataDirOf(given);
  return namesIn(directory).filter((name) => isDirectory(identify(`${directory}/${name}`)));
}
