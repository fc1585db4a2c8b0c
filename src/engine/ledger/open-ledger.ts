/** Writes the ledger during ADD: each resource before it is made. Lines are appended with one write(2). */
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  closeFile,
  identify,
  O_APPEND,
  O_CREAT,
  O_WRONLY,
  removeEmptyDirectory,
  removeFile,
  truncateFile,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { lockShared, tryLockExclusive } from "../../process/lock.ts";
import { type OpenState, openStateFile } from "../../process/state-file.ts";
import { warn } from "../../process/warn.ts";
import { privateDirectory } from "../../process/state-directory.ts";
import { ledgerPath, networkDirectory } from "./paths.ts";
import { type AddAnswer, FORMAT, type LedgerHeader } from "./record.ts";

export interface OpenLedger {
  /** Announces resources. They are made only after this returns. */
  intend(resources: readonly { kind: { kind: string }; spec: unknown }[]): void;
  /** ADD succeeded. Returns false when a DEL removed the ledger meanwhile: then everything made must be undone. */
  finish(answer: AddAnswer): boolean;
  /**
   * ADD failed and everything was undone: removes what this ADD wrote. Entries of earlier ADDs stay. When another ADD of the
   * same attachment has written meanwhile, all lines stay: DEL finds nothing of ours, and all of the other's.
   */
  abandon(): void;
  /** ADD failed and something could not be undone: the file stays for DEL. */
  keep(): void;
}

const ATTEMPTS = 100;

/**
 * The DEL of the network's last attachment removes the directory, and may do so before the file is in it. A GC removes empty
 * files that nobody has locked, and may do so before this one is.
 */
function openForAppending(path: string, directory: string): OpenState {
  for (let attempt = 1;; attempt++) {
    try {
      privateDirectory(directory);
      const state = openStateFile(path, O_WRONLY | O_APPEND | O_CREAT);
      lockShared(state.fd); // see repairing()
      if (identify(state.fd).links > 0 || attempt === ATTEMPTS) return state;
      closeFile(state.fd);
    } catch (error) {
      const isRemoved = isErrno(error, ENOENT) || isErrno((error as Error).cause, ENOENT);
      if (!isRemoved || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Creates the ledger, or appends to the one of earlier ADDs. */
export function openLedger(header: Omit<LedgerHeader, "patchbay">): OpenLedger {
  const path = ledgerPath(header, header.plugin);
  const { fd, size: earlierBytes } = openForAppending(path, networkDirectory(header.network));
  // Start a new line: a crash may have cut off the last one.
  let pending = (earlierBytes > 0 ? "\n" : "") + JSON.stringify({ patchbay: FORMAT, ...header }) + "\n";
  /** How long the file is at most while nobody else writes. */
  let ownEnd = earlierBytes;
  const append = (lines: string) => {
    const bytes = utf8(lines);
    ownEnd += bytes.length;
    writeAll(fd, bytes, path);
  };
  const isAlone = () => tryLockExclusive(fd) && identify(fd).size <= ownEnd;
  /** For a line that ADD can do without: a full disk must not fail it. */
  const tryToWrite = (line: unknown) => {
    try {
      append(JSON.stringify(line) + "\n");
    } catch (error) {
      warn(`ledger ${path} is not complete: ${(error as Error).message}`);
    }
  };
  return {
    intend(resources) {
      let lines = pending;
      for (const { kind, spec } of resources) lines += JSON.stringify({ kind: kind.kind, spec }) + "\n";
      append(lines);
      pending = "";
    },
    finish(answer) {
      tryToWrite({ answer });
      const { links } = identify(fd);
      closeFile(fd);
      return links > 0;
    },
    abandon() {
      if (isAlone()) {
        if (earlierBytes === 0) removeFile(path);
        else truncateFile(fd, earlierBytes, path);
      }
      closeFile(fd);
      removeEmptyDirectory(networkDirectory(header.network));
    },
    keep: () => closeFile(fd),
  };
}
