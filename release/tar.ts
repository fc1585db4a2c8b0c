/** Writes tar archives (ustar, tar(5)): root's files with the directories that they are in, all of one time, sorted. */
import { bytesOf, directoriesOf, type File, modeOf } from "./files.ts";

const BLOCK = 512;

export function tarOf(files: readonly File[], epoch: number): Uint8Array<ArrayBuffer> {
  const entries = [
    ...directoriesOf(files).map((path) => ({ path, blocks: [header(`${path}/`, 0o755, 0, "5", epoch)] })),
    ...files.map((file) => ({ path: file.path, blocks: blocksOf(file, epoch) })),
  ].sort((one, other) => one.path < other.path ? -1 : 1);
  return Buffer.concat([...entries.flatMap(({ blocks }) => blocks), new Uint8Array(2 * BLOCK)]);
}

function blocksOf(file: File, epoch: number): Uint8Array[] {
  const bytes = bytesOf(file), padding = new Uint8Array(-bytes.length & (BLOCK - 1));
  return [header(file.path, modeOf(file), bytes.length, "0", epoch), bytes, padding];
}

/** A path without a slash at its begin, of at most 99 bytes, which is enough for what we pack. */
function header(path: string, mode: number, size: number, type: string, epoch: number): Uint8Array {
  if (Buffer.byteLength(path) > 99) {
    throw new Error(`tar: ${path} is longer than the 99 bytes that ustar takes: shorten it`);
  }
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at);
  block.write(path, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(epoch, 136, 12);
  block.write(`        ${type}`, 148);
  block.write("ustar\x0000", 257);
  block.write(`${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
