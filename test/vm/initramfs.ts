/**
 * An initial RAM file system in the kernel's "newc" cpio format
 * (Documentation/driver-api/early-userspace/buffer-format.rst).
 */

export interface Entry {
  path: string;
  /** A directory when absent. */
  content?: Uint8Array;
}

export function initramfs(entries: readonly Entry[]): Buffer {
  const parts: Buffer[] = [];
  for (const { path, content } of [...entries, { path: "TRAILER!!!" }]) {
    const inode = parts.length + 1;
    const mode = content === undefined ? 0o040755 : 0o100755;
    const size = content?.length ?? 0;
    const numbers = [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, path.length + 1, 0];
    const header = numbers.map((number) => number.toString(16).padStart(8, "0")).join("");
    parts.push(padded(Buffer.from(`070701${header}${path}\0`)), padded(Buffer.from(content ?? [])));
  }
  return Buffer.concat(parts);
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}
