/**
 * What another plugin does in this one's place, with a configuration of its own. Each operation is a verb of that
 * plugin. Owns on disk: the file that keeps the configuration for as long as what the other plugin made is there.
 */
import { failureLines } from "../../cni/error.ts";
import type { Result } from "../../cni/result.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import {
  closeFile,
  exists,
  identify,
  makeDirectories,
  O_CREAT,
  O_WRONLY,
  removeFile,
  syncDescriptor,
  truncateFile,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { type OpenState, openStateFile, readTrustedState, UntrustedState } from "../../process/state-file.ts";

interface DelegationSpec {
  /** The other plugin's name. */
  type: string;
  /** The configuration it gets, word for word. */
  stdin: string;
  /** The file that keeps it. */
  keptIn: string;
}

export const delegationKind: ResourceKind<DelegationSpec, Result> = {
  kind: "delegation",
  isDelegated: true,
  unmade: { cniVersion: "" },
  // A file that names a plugin nobody has could never be removed by DEL.
  requireRoom: ({ type }, host) => host.requirePlugin(type),
  apply({ type, stdin, keptIn }, host) {
    writeConfiguration(keptIn, stdin);
    // When ADD fails the file stays: DEL goes by it, and it may be an earlier ADD's.
    return host.delegate(type, "ADD", stdin)!;
  },
  verify: ({ type, stdin }, host) => failureLines(() => host.delegate(type, "CHECK", stdin)),
  remove({ type, stdin, keptIn }, host) {
    host.delegate(type, "DEL", stdin);
    // Last: until here the next DEL finds it. Another attachment's file may have the name; a crash may have cut ours.
    const kept = readTrustedState(keptIn);
    if (kept !== undefined && stdin.startsWith(kept)) removeFile(keptIn);
  },
  describe: ({ type }) => `what ${type} makes`,
};

export const delegation = resource(delegationKind);

/** What cannot be judged may have been made just now. An empty file says nothing to DEL, nor to flannel's own. */
function openForWriting(path: string): OpenState {
  try {
    return openStateFile(path, O_WRONLY | O_CREAT);
  } catch (error) {
    if (!(error instanceof UntrustedState)) undoAfter(error, () => removeIfEmpty(path));
    throw error;
  }
}

function removeIfEmpty(path: string): void {
  if (exists(path) && identify(path, false).size === 0) removeFile(path);
}

function writeConfiguration(path: string, text: string): void {
  makeDirectories(path.slice(0, path.lastIndexOf("/")), 0o700);
  const { fd, size } = openForWriting(path);
  try {
    if (size > 0) truncateFile(fd, 0, path);
    writeAll(fd, utf8(text), path);
    syncDescriptor(fd, path);
  } catch (error) {
    undoAfter(error, () => void removeFile(path));
    throw error;
  } finally {
    closeFile(fd);
  }
}
