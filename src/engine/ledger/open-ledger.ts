/** The ledger while ADD writes it: each resource before it is made. Lines are appended with one write(2). */
import {
  closeFile,
  identify,
  O_APPEND,
  O_CREAT,
  O_NOFOLLOW,
  O_WRONLY,
  openFile,
  removeEmptyDirectory,
  removeFile,
  truncateFile,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { lockShared } from "../../ffi/lock.ts";
import { warn } from "../../ffi/warn.ts";
import { privateDirectory } from "../state-directory.ts";
import { ledgerPath, networkDirectory } from "./paths.ts";
import { type AddAnswer, FORMAT, type LedgerHeader } from "./record.ts";

/** A ledger that is being written by ADD. */
export interface OpenLedger {
  /** Announces resources; they are made only after this returned. */
  intend(resources: readonly { kind: { kind: string }; spec: unknown }[]): void;
  /** ADD is over. Answers false when DEL took the ledger away meanwhile: what was made must go. */
  finish(answer: AddAnswer): boolean;
  /** ADD failed and all was undone: forgets what it announced. An earlier ADD's entries stay. */
  abandon(): void;
  /** ADD failed and something could not be undone: the file stays for DEL. */
  keep(): void;
}

/** Starts, or goes on with, the ledger of an ADD. */
export function openLedger(header: Omit<LedgerHeader, "patchbay">): OpenLedger {
  const path = ledgerPath(header, header.plugin);
  privateDirectory(networkDirectory(header.network));
  const fd = openFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  lockShared(fd); // see repairing()
  const earlierBytes = identify(fd).size;
  // A line cut off by a crash must not swallow the ones to come.
  let pending = (earlierBytes > 0 ? "\n" : "") + JSON.stringify({ patchbay: FORMAT, ...header }) + "\n";
  /** What helps, and what a full disk must not make an ADD fail for. */
  const note = (line: unknown) => {
    try {
      writeAll(fd, utf8(JSON.stringify(line) + "\n"), path);
    } catch (error) {
      warn(`ledger ${path} is not complete: ${(error as Error).message}`);
    }
  };
  return {
    intend(resources) {
      let lines = pending;
      for (const { kind, spec } of resources) lines += JSON.stringify({ kind: kind.kind, spec }) + "\n";
      writeAll(fd, utf8(lines), path);
      pending = "";
    },
    finish(answer) {
      note({ answer });
      const { links } = identify(fd);
      closeFile(fd);
      return links > 0;
    },
    abandon() {
      if (earlierBytes === 0) removeFile(path);
      else truncateFile(fd, earlierBytes, path);
      closeFile(fd);
      removeEmptyDirectory(networkDirectory(header.network));
    },
    keep: () => closeFile(fd),
  };
}
