/**
 * What each worker does, in a file beside the socket. A launcher whose call nobody takes at once looks there whether
 * waiting is worth it (src/native/launch.h, which has the same layout). The parent sees whether anybody calls.
 *
 * The file has a slot of 16 bytes for each worker: its process id, since when it has been busy, how many calls it has
 * taken, and nothing. The time is in milliseconds since boot, in 32 bits; 0 means that the worker waits. A worker that is
 * not ready has no process id.
 */
import { RESIDENT_BOARD } from "../../process/state-directory.ts";
import { millisecondsSinceBoot } from "../../ffi/clock.ts";
import { moveUp } from "../../ffi/descriptors.ts";
import {
  closeFile,
  idAt,
  identify,
  O_CREAT,
  O_EXCL,
  O_RDWR,
  openFile,
  readAt,
  removeFile,
  writeAt,
} from "../../ffi/files.ts";
import { allocateOnDisk } from "../../ffi/memory.ts";

const SLOTS = 128, NUMBERS_IN_SLOT = 4, PROCESS = 0, SINCE = 1, CALLS = 2;
const SLOT_BYTES = NUMBERS_IN_SLOT * 4, BOARD_BYTES = SLOTS * SLOT_BYTES;

/** The parent's. */
export class Scoreboard {
  private readonly id: string;
  private readonly free = Array.from({ length: SLOTS }, (_, slot) => SLOTS - 1 - slot);
  /** Calls of workers that have ended. */
  private callsBefore = 0;
  private isClosed = false;

  private constructor(readonly fd: number) {
    this.id = identify(fd).id;
  }

  /** In the place of one that a resident before this one has left. */
  static open(): Scoreboard {
    removeFile(RESIDENT_BOARD);
    const fd = moveUp(openFile(RESIDENT_BOARD, O_RDWR | O_CREAT | O_EXCL));
    try {
      allocateOnDisk(fd, BOARD_BYTES, RESIDENT_BOARD);
      return new Scoreboard(fd);
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

  /** A worker may end after its board was closed, and the descriptor's number is another file's by then. */
  freeSlot(slot: number): void {
    if (this.isClosed) return;
    this.callsBefore += this.numbers()[slot * NUMBERS_IN_SLOT + CALLS]!;
    writeAt(this.fd, new Uint8Array(SLOT_BYTES), slot * SLOT_BYTES);
    this.free.push(slot);
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

  close(): void {
    if (this.isInPlace) removeFile(RESIDENT_BOARD);
    this.isClosed = true;
    closeFile(this.fd);
  }

  private numbers(): Uint32Array {
    const numbers = new Uint32Array(SLOTS * NUMBERS_IN_SLOT);
    readAt(this.fd, new Uint8Array(numbers.buffer), 0);
    return numbers;
  }
}

/** A worker's own slot. */
export class Slot {
  private readonly numbers = new Uint32Array(NUMBERS_IN_SLOT);

  constructor(private readonly board: number, private readonly slot: number) {}

  ready(): void {
    this.numbers[PROCESS] = process.pid;
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

  /** Not through a mapping: cutting off the file would kill every process that has it mapped. */
  private write(): void {
    writeAt(this.board, new Uint8Array(this.numbers.buffer), this.slot * SLOT_BYTES);
  }
}
