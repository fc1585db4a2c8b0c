/**
 * The leases on disk, a file each, in a directory that survives a reboot. A record is there before anybody learns of the
 * address, and gone after it was released.
 *
 * While no service runs, a DEL puts an empty file beside the record, and the service releases the lease when it comes up.
 * The lock says whether a service runs: a service holds it as long as it lives.
 */
import { fileName } from "../../../contract/file-name.ts";
import type { Owner } from "../../../contract/owner.ts";
import { errorText } from "../../../cni/error.ts";
import { ENOENT, isErrno } from "../../../ffi/errno.ts";
import {
  closeFile,
  makeDirectories,
  namesIn,
  O_CREAT,
  O_RDONLY,
  O_RDWR,
  removeFile,
  replaceFile,
  syncDirectory,
  truncateFile,
  writeAll,
} from "../../../ffi/files.ts";
import { tryLockExclusive, tryLockShared } from "../../../process/lock.ts";
import {
  isTrustedDirectory,
  judgeStateDirectory,
  openExistingState,
  openStateFile,
  readStateFile,
  readTrustedState,
  unlessUntrusted,
} from "../../../process/state-file.ts";
import { check, cString, libc, utf8 } from "../../../ffi/libc.ts";
import { type LeaseRecord, NewerRecord, readRecord } from "./record.ts";

const RECORD = ".lease",
  TO_RELEASE = ".given-up",
  DAMAGED = ".damaged",
  TEMPORARY = ".new",
  LOCK = "lock",
  RELEASED = "given-back";

export interface Entry {
  record: LeaseRecord;
  /** Its container was deleted while no service ran. */
  isToBeReleased: boolean;
}

export class Journal {
  private constructor(readonly directory: string, private readonly lock: number) {}

  /** Undefined when another process has it. */
  static open(directory: string): Journal | undefined {
    makeDirectories(directory, 0o700);
    judgeStateDirectory(directory);
    const lock = openStateFile(`${directory}/${LOCK}`, O_RDWR | O_CREAT).fd;
    if (tryLockExclusive(lock)) {
      nameHolder(lock);
      return new Journal(directory, lock);
    }
    closeFile(lock);
    return undefined;
  }

  /** Whether a process has it. Makes nothing. */
  static isHeld(directory: string): boolean {
    if (!isTrustedDirectory(directory)) return false;
    const lock = unlessUntrusted(() => openExistingState(`${directory}/${LOCK}`, O_RDONLY));
    if (lock === undefined) return false;
    try {
      return !tryLockShared(lock.fd);
    } finally {
      closeFile(lock.fd);
    }
  }

  /** Which process has it, as far as that is known. */
  static holderOf(directory: string): string {
    return (readTrustedState(`${directory}/${LOCK}`) ?? "").trim() || "unknown";
  }

  close(): void {
    closeFile(this.lock);
  }

  /** `durable`: it is there after a power cut, too. */
  write(record: LeaseRecord, durable: boolean): void {
    const path = this.pathOf(record);
    removeFile(`${path}${TO_RELEASE}`);
    replaceFile(path, `${JSON.stringify(record)}\n`, { durable, temporary: `${path}${TEMPORARY}` });
  }

  remove(owner: Owner): void {
    const path = this.pathOf(owner);
    removeFile(path);
    removeFile(`${path}${TO_RELEASE}`);
  }

  /** The service that comes next releases this lease. `durable`: also after a power cut. */
  releaseLater(owner: Owner, durable: boolean): void {
    const path = `${this.pathOf(owner)}${TO_RELEASE}`;
    closeFile(openStateFile(path, O_RDWR | O_CREAT).fd);
    if (durable) syncDirectory(this.directory);
  }

  /** Returns what `keepReleasedAddresses` has kept, or "". */
  releasedAddresses(): string {
    return readTrustedState(`${this.directory}/${RELEASED}`) ?? "";
  }

  /** A text for the service that comes next. */
  keepReleasedAddresses(text: string): void {
    const path = `${this.directory}/${RELEASED}`;
    if (text === "") removeFile(path);
    else replaceFile(path, text, { temporary: `${path}${TEMPORARY}` });
  }

  /** Every record. One that cannot be read is set aside; one in a newer format stays for the service that wrote it. */
  entries(report: (problem: string) => void): Entry[] {
    const names = new Set(namesIn(this.directory));
    for (const name of names) {
      const isLeftOver = name.endsWith(TO_RELEASE) && !names.has(name.slice(0, -TO_RELEASE.length));
      if (isLeftOver || name.endsWith(TEMPORARY)) removeFile(`${this.directory}/${name}`);
    }
    return readAllRecords(this.directory, (path, error) => {
      if (error instanceof NewerRecord) {
        return report(
          `${path} is ${error.message}: a newer version of this service wrote it, and can hold the lease`,
        );
      }
      check("rename", libc.rename(cString(path), cString(`${path}${DAMAGED}`)), path);
      report(`${path} is not a lease (${errorText(error)}); it is ${path}${DAMAGED} now`);
    });
  }

  private pathOf(owner: Owner): string {
    return `${this.directory}/${nameFor(owner)}`;
  }
}

function nameFor({ network, containerId, ifName }: Owner): string {
  // Neither of the first two contains "@".
  return `${fileName(`${network}@${containerId}@${ifName}`)}${RECORD}`;
}

/** The process id is only for people: on a full disk it stays unknown. */
function nameHolder(lock: number): void {
  try {
    truncateFile(lock, 0);
    writeAll(lock, utf8(`${process.pid}\n`));
  } catch {
    // The lock counts.
  }
}

/** For programs that only look. A record that cannot be read is left to the service. */
export function recordsIn(directory: string): Entry[] {
  return isTrustedDirectory(directory) ? readAllRecords(directory, () => {}) : [];
}

function readAllRecords(directory: string, onDamaged: (path: string, error: unknown) => void): Entry[] {
  const names = new Set(namesIn(directory)), entries: Entry[] = [];
  for (const name of names) {
    if (!name.endsWith(RECORD)) continue;
    const path = `${directory}/${name}`;
    try {
      const text = readStateFile(path);
      if (text === undefined) continue;
      const record = readRecord(text);
      // Under another name it could neither be replaced nor removed.
      if (nameFor(record) !== name) throw new Error(`the lease in it is ${nameFor(record)}`);
      entries.push({ record, isToBeReleased: names.has(`${name}${TO_RELEASE}`) });
    } catch (error) {
      if (!isErrno(error, ENOENT)) onDamaged(path, error);
    }
  }
  return entries;
}
