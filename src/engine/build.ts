/** Which build a program's file is. compile/entry.ts writes it. */
import { O_RDONLY, openFile, readAt, whileOpen } from "../ffi/files.ts";
import { check } from "../ffi/libc.ts";

/** SHA-1 of the program's parts. */
export const BUILD_BYTES = 20;
/** The last segment of the file begins with `parameters` of src/native/entry.c: three numbers, then the build. */
const BUILD_AT = 24;
const PT_LOAD = 1;

export function ownBuild(): Uint8Array {
  return buildOf("/proc/self/exe");
}

/** The build of a program of ours. For any other program the bytes mean nothing. */
export function buildOf(path: string): Uint8Array {
  return whileOpen(openFile(path, O_RDONLY), (fd) => {
    const head = new DataView(bytesAt(fd, path, 0, 4096).buffer);
    const first = Number(head.getBigUint64(32, true)),
      size = head.getUint16(54, true),
      count = head.getUint16(56, true);
    let offset = 0;
    for (let at = first; at < first + size * count; at += size) {
      if (head.getUint32(at, true) === PT_LOAD) offset = Number(head.getBigUint64(at + 8, true));
    }
    return bytesAt(fd, path, offset + BUILD_AT, BUILD_BYTES);
  });
}

function bytesAt(fd: number, path: string, offset: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  check("pread", readAt(fd, bytes, offset), path);
  return bytes;
}
