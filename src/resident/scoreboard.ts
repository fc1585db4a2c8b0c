/**
 * What each worker does, in a file beside the socket. A launcher whose call nobody takes at once looks there whether
 * waiting is worth it (src/native/launch.h, which has the same layout). The parent sees whether anybody calls.
 *
 * The file has a slot of 16 bytes for each worker: its process id, since when it has been busy, how many calls it has
 * taken, and nothing. The time is in milliseconds since boot, in 32 bits; 0 means that the worker waits. A worker that is
 * not ready has no process id.
 */
import { RESIDENT_BOARD } from "../engine/state-directory.ts";
import { millisecondsSinceBoot } from "../ffi/clock.ts";
import { moveUp } from "../ffi/descriptors.ts";
import { closeFile, idAt, identify, O_CREAT, O_EXCL, O_RDWR, openFile, removeFile } from "../ffi/files.ts";
import { allocateOnDisk, mapShared } from "../ffi/memory.ts";

const SLOTS = 128, NUMBERS_IN_SLOT = 4, PROCESS = 0, SINCE = 1, CALLS = 2;
const BOARD_BYTES = SLOTS * NUMBERS_IN_SLOT * 4;

/** The parent's. */
export class Scoreboard {
  private readonly numbers: Uint32Array;
  private readonly id: string;
  private readonly free = Array.from({ length: SLOTS }, (_, slot) => SLOTS - 1 - slot);
  /** Of workers that have ended. */
  private callsBefore = 0;

  private constructor(readonly fd: number) {
    this.numbers = map(fd);
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

  freeSlot(slot: number): void {
    const at = slot * NUMBERS_IN_SLOT;
    this.callsBefore += this.numbers[at + CALLS]!;
    this.numbers.fill(0, at, at + NUMBERS_IN_SLOT);
    this.free.push(slot);
  }

  isReady(slot: number): boolean {
    return this.numbers[slot * NUMBERS_IN_SLOT + PROCESS] !== 0;
  }

  /** How many calls have been taken. */
  get calls(): number {
    let sum = this.callsBefore;
    for (let at = CALLS; at < this.numbers.length; at += NUMBERS_IN_SLOT) sum += this.numbers[at]!;
    return sum;
  }

  /** What is mapped stays: workers of before may still end. */
  close(): void {
    if (this.isInPlace) removeFile(RESIDENT_BOARD);
    closeFile(this.fd);
  }
}

/** A worker's own slot. */
export class Slot {
  private readonly numbers: Uint32Array;

  constructor(board: number, slot: number) {
    this.numbers = map(board).subarray(slot * NUMBERS_IN_SLOT, (slot + 1) * NUMBERS_IN_SLOT);
  }

  ready(): void {
    this.numbers[PROCESS] = process.pid;
  }

  setBusy(): void {
    this.numbers[SINCE] = Math.max(1, millisecondsSinceBoot());
  }

  setIdle(): void {
    this.numbers[SINCE] = 0;
  }

  countCall(): void {
    this.numbers[CALLS]!++;
  }
}

function map(fd: number): Uint32Array {
  return new Uint32Array(mapShared(fd, BOARD_BYTES, RESIDENT_BOARD));
}
