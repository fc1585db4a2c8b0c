/** Writes tar archives (ustar, tar(5)): root's files, all of one time, in the order that they are given. */

export interface TarEntry {
  /** Without a slash at its begin. At most 99 bytes, which is enough for what we pack. */
  path: string;
  mode: number;
  /** A file's content. A directory has none. */
  bytes?: Uint8Array;
}

const BLOCK = 512;

export function tarOf(entries: readonly TarEntry[], epoch: number): Uint8Array {
  const blocks = entries.flatMap(({ path, mode, bytes }) => [
    header(bytes === undefined ? `${path}/` : path, mode, bytes?.length ?? 0, bytes === undefined ? "5" : "0", epoch),
    ...bytes === undefined ? [] : [bytes, new Uint8Array(-bytes.length & (BLOCK - 1))],
  ]);
  return Buffer.concat([...blocks, new Uint8Array(2 * BLOCK)]);
}

/** Files with the directories that they are in, sorted. */
export function withDirectories(files: readonly TarEntry[]): TarEntry[] {
  const directories = files.flatMap(({ path }) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index)));
  return [...[...new Set(directories)].map((path) => ({ path, mode: 0o755 })), ...files].sort((one, other) =>
    one.path < other.path ? -1 : 1
  );
}

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
