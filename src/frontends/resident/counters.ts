/**
 * Counters by name, in a page of memory that other processes can read. The parent makes a page for each worker and keeps
 * it: a worker that dies loses nothing. Each page has one writer.
 *
 * A page has the layout's number, the writer's process id, when the writer began in seconds since boot; then for each name
 * its count and the name, padded with NUL.
 */
import { secondsSinceBoot } from "../../ffi/clock.ts";
import { readAll } from "../../ffi/files.ts";
import { check, fromUtf8, utf8 } from "../../ffi/libc.ts";
import { allocateOnDisk, mapShared, memoryFile } from "../../ffi/memory.ts";

const LAYOUT = 0x31424351;
const PAGE_BYTES = 4096, HEAD_BYTES = 64, ENTRY_BYTES = 64, COUNT_BYTES = 4;
const ENTRIES = (PAGE_BYTES - HEAD_BYTES) / ENTRY_BYTES;
/** The names. The reason follows the last one. */
export const SERVED = "served",
  TAKEN_BACK = "taken back",
  REPLACED = "worker replaced",
  DECLINED_BECAUSE = "declined: ";
/** Counts what has no place in the page. */
const OTHERS = "others";

export function makePage(name: string): number {
  const fd = check("memfd_create", memoryFile(name));
  // A store into memory that the kernel does not have would kill the writer.
  allocateOnDisk(fd, PAGE_BYTES, name);
  return fd;
}

export class Counters {
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private readonly places = new Map<string, number>();

  /** The caller is the only one that writes to the page, from now on. */
  constructor(page: number) {
    const buffer = mapShared(page, PAGE_BYTES, "counters");
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    [LAYOUT, process.pid, secondsSinceBoot()].forEach((value, index) => this.view.setUint32(index * 4, value, true));
  }

  count(name: string, times = 1): void {
    const at = this.places.get(name) ?? this.newPlace(name);
    this.view.setUint32(at, this.view.getUint32(at, true) + times, true);
  }

  private newPlace(wanted: string): number {
    const index = this.places.size, name = index < ENTRIES - 1 ? wanted : OTHERS;
    const at = this.places.get(name) ?? HEAD_BYTES + index * ENTRY_BYTES;
    this.places.set(name, at);
    this.bytes.set(utf8(name).subarray(0, ENTRY_BYTES - COUNT_BYTES), at + COUNT_BYTES);
    return at;
  }
}

export interface Page {
  pid: number;
  /** In seconds since boot. */
  begun: number;
  counts: Map<string, number>;
}

/** Reads from the descriptor's position. Returns undefined when no writer has begun, or one of another build has. */
export function readPage(fd: number): Page | undefined {
  const bytes = readAll(fd, PAGE_BYTES, "counters");
  if (bytes.length !== PAGE_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), counts = new Map<string, number>();
  if (view.getUint32(0, true) !== LAYOUT) return undefined;
  for (let at = HEAD_BYTES; at < PAGE_BYTES; at += ENTRY_BYTES) {
    const text = bytes.subarray(at + COUNT_BYTES, at + ENTRY_BYTES), end = text.indexOf(0);
    const name = fromUtf8(end < 0 ? text : text.subarray(0, end));
    if (name !== "") counts.set(name, view.getUint32(at, true));
  }
  return { pid: view.getUint32(4, true), begun: view.getUint32(8, true), counts };
}
