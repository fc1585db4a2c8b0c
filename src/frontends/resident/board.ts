/**
 * What each worker does and has done, in a file beside the socket. A launcher whose call nobody takes at once looks there
 * whether waiting is worth it (src/native/launch.h, which knows the slots). The parent sees whether anybody calls, and
 * `serve --status` reads all of it.
 *
 * The file begins with a slot of 16 bytes for each worker: its process id, since when it has been busy, how many calls it
 * has answered, and when it began, in seconds since boot. Since when it is busy is in milliseconds since boot, in 32 bits; 0
 * means that it waits. A worker that is not ready has no process id. Behind the slots, each worker has a page of counters: a
 * count, and its name padded with NUL. The last slot and the last page are the parent's, with the counts of workers that
 * have ended.
 */
import { RESIDENT_BOARD } from "../../process/state-directory.ts";
import { millisecondsSinceBoot, secondsSinceBoot } from "../../ffi/clock.ts";
import { moveUp } from "../../ffi/descriptors.ts";
import {
  closeFile,
  idAt,
  identify,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  O_RDWR,
  openExisting,
  openFile,
  readAt,
  readTextFile,
  removeFile,
  writeAt,
} from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { allocateOnDisk } from "../../ffi/memory.ts";

export const SLOTS = 128;
const PARENTS = SLOTS, NUMBERS_IN_SLOT = 4, PROCESS = 0, SINCE = 1, CALLS = 2, BEGUN = 3;
const SLOT_BYTES = NUMBERS_IN_SLOT * 4, SLOTS_BYTES = (SLOTS + 1) * SLOT_BYTES;
const PAGES_AT = 4096, PAGE_BYTES = 2048, ENTRY_BYTES = 64, COUNT_BYTES = 4, ENTRIES = PAGE_BYTES / ENTRY_BYTES;
const BOARD_BYTES = PAGES_AT + (SLOTS + 1) * PAGE_BYTES;

/** The names of counters. The reason follows the last one. */
export const SERVED = "served",
  TAKEN_BACK = "taken back",
  REPLACED = "worker replaced",
  DECLINED_BECAUSE = "declined: ";

/** What one process says on the board. */
export interface BoardEntry {
  pid: number;
  /** In seconds since boot. */
  begun: number;
  counts: Map<string, number>;
}

/** The parent's. */
export class Board {
  private readonly id: string;
  private readonly free = Array.from({ length: SLOTS }, (_, slot) => SLOTS - 1 - slot);
  private readonly own: Slot;
  /** The calls of workers that have ended. */
  private callsBefore = 0;
  private isRetired = false;

  private constructor(readonly fd: number) {
    this.id = identify(fd).id;
    this.own = new Slot(fd, PARENTS);
    this.own.ready();
  }

  /** In the place of one that a resident before this one has left. */
  static open(): Board {
    removeFile(RESIDENT_BOARD);
    const fd = moveUp(openFile(RESIDENT_BOARD, O_RDWR | O_CREAT | O_EXCL));
    try {
      allocateOnDisk(fd, SLOTS_BYTES, RESIDENT_BOARD);
      return new Board(fd);
    } catch (error) {
      removeFile(RESIDENT_BOARD);
      closeFile(fd);
      throw error;
    }
  }

  get isInPlace(): boolean {
    return idAt(RESIDENT_BOARD) === this.id;
  }

  takeSlot(): number {
    const slot = this.free.pop();
    if (slot === undefined) throw new Error(`all ${SLOTS} workers that ${RESIDENT_BOARD} has room for are there`);
    return slot;
  }

  freeSlot(slot: number): void {
    this.callsBefore += this.numbers()[slot * NUMBERS_IN_SLOT + CALLS]!;
    writeAt(this.fd, new Uint8Array(SLOT_BYTES), slot * SLOT_BYTES);
    writeAt(this.fd, new Uint8Array(PAGE_BYTES), pageOf(slot));
    this.free.push(slot);
    this.closeIfUnused();
  }

  countsOf(slot: number): ReadonlyMap<string, number> {
    return countsIn(readBytes(this.fd, pageOf(slot), PAGE_BYTES));
  }

  /** What the parent has added up. */
  setTotals(totals: ReadonlyMap<string, number>): void {
    for (const [name, times] of totals) this.own.set(name, times);
  }

  isReady(slot: number): boolean {
    return this.numbers()[slot * NUMBERS_IN_SLOT + PROCESS] !== 0;
  }

  /** How many calls have been taken. */
  get calls(): number {
    const numbers = this.numbers();
    let sum = this.callsBefore;
    for (let at = CALLS; at < numbers.length; at += NUMBERS_IN_SLOT) sum += numbers[at]!;
    return sum;
  }

  /** Nobody finds it any more. It is closed when its last worker has ended. */
  retire(): void {
    if (this.isInPlace) removeFile(RESIDENT_BOARD);
    this.isRetired = true;
    this.closeIfUnused();
  }

  private closeIfUnused(): void {
    if (this.isRetired && this.free.length === SLOTS) closeFile(this.fd);
  }

  private numbers(): Uint32Array {
    return numbersIn(readBytes(this.fd, 0, SLOTS_BYTES));
  }
}

/** One process's own slot and page, which nobody else writes to. */
export class Slot {
  private readonly numbers = new Uint32Array(NUMBERS_IN_SLOT);
  private readonly entries = new Map<string, { at: number; times: number }>();

  constructor(private readonly board: number, private readonly slot: number) {}

  ready(): void {
    this.numbers[PROCESS] = process.pid;
    this.numbers[BEGUN] = secondsSinceBoot();
    this.write();
  }

  setBusy(): void {
    this.numbers[SINCE] = Math.max(1, millisecondsSinceBoot());
    this.write();
  }

  setIdle(): void {
    this.numbers[SINCE] = 0;
    this.write();
  }

  /** Shown with the next change. */
  countCall(): void {
    this.numbers[CALLS]!++;
  }

  count(name: string): void {
    this.set(name, (this.entries.get(name)?.times ?? 0) + 1);
  }

  /** What has no place in the page is not shown. */
  set(name: string, times: number): void {
    const index = this.entries.size;
    const entry = this.entries.get(name) ?? { at: pageOf(this.slot) + index * ENTRY_BYTES, times };
    if (index === ENTRIES && !this.entries.has(name)) return;
    this.entries.set(name, entry);
    entry.times = times;
    const bytes = new Uint8Array(ENTRY_BYTES);
    new DataView(bytes.buffer).setUint32(0, times, true);
    bytes.set(utf8(name).subarray(0, ENTRY_BYTES - COUNT_BYTES), COUNT_BYTES);
    writeAt(this.board, bytes, entry.at);
  }

  /** Not through a mapping: whoever cuts the file off would kill everybody who has it mapped. */
  private write(): void {
    writeAt(this.board, new Uint8Array(this.numbers.buffer), this.slot * SLOT_BYTES);
  }
}

/** What the board says of a resident; undefined when it is not this process's. */
export function boardOf(
  resident: number,
  path = RESIDENT_BOARD,
): { parent: BoardEntry; workers: BoardEntry[] } | undefined {
  const fd = openExisting(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd === undefined) return undefined;
  try {
    const bytes = readBytes(fd, 0, BOARD_BYTES), all = entriesIn(bytes), parent = all.get(PARENTS);
    if (parent === undefined || parent.pid !== ownNumberOf(resident)) return undefined;
    all.delete(PARENTS);
    return { parent, workers: [...all.values()] };
  } finally {
    closeFile(fd);
  }
}

/** As the process itself knows it: it may be in a process namespace below. Undefined when it has ended. */
function ownNumberOf(pid: number): number | undefined {
  const line = readTextFile(`/proc/${pid}/status`)?.split("\n").find((each) => each.startsWith("NSpid:"));
  return line === undefined ? undefined : Number(line.split("\t").at(-1));
}

/** By slot, those that are ready. */
function entriesIn(bytes: Uint8Array): Map<number, BoardEntry> {
  const numbers = numbersIn(bytes.slice(0, SLOTS_BYTES)), entries = new Map<number, BoardEntry>();
  for (let slot = 0; slot <= PARENTS; slot++) {
    const [pid, , , begun] = numbers.subarray(slot * NUMBERS_IN_SLOT, (slot + 1) * NUMBERS_IN_SLOT);
    const counts = countsIn(bytes.subarray(pageOf(slot), pageOf(slot) + PAGE_BYTES));
    if (pid !== 0) entries.set(slot, { pid: pid!, begun: begun!, counts });
  }
  return entries;
}

function countsIn(page: Uint8Array): Map<string, number> {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength), counts = new Map<string, number>();
  for (let at = 0; at < PAGE_BYTES; at += ENTRY_BYTES) {
    const text = page.subarray(at + COUNT_BYTES, at + ENTRY_BYTES), end = text.indexOf(0);
    const name = fromUtf8(end < 0 ? text : text.subarray(0, end));
    if (name !== "") counts.set(name, view.getUint32(at, true));
  }
  return counts;
}

function pageOf(slot: number): number {
  return PAGES_AT + slot * PAGE_BYTES;
}

/** What the file does not have is zero. */
function readBytes(fd: number, at: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  readAt(fd, bytes, at);
  return bytes;
}

function numbersIn(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
