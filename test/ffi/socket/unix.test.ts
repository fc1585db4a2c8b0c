/** Connecting to a socket that nobody serves ends. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeFile, writeAll } from "../../../src/ffi/files.ts";
import { setNonblocking } from "../../../src/ffi/descriptors.ts";
import { openPipe } from "../../../src/ffi/spawn.ts";
import { connectTo, listenAt, listenOn } from "../../../src/ffi/socket/unix.ts";

test("a listener that accepts nobody is not waited for without end, nor is a reader that does not read", () => {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-socket-")), path = join(directory, "socket");
  const listening = listenAt(path), open = [listening];
  try {
    // The kernel always lets one more connection wait than the queue's length.
    listenOn(listening, path, 0);
    open.push(connectTo(path, 20));
    expect(() => connectTo(path, 20)).toThrow(`connect ${path}: connection timed out`);
    const [readEnd, writeEnd] = openPipe();
    open.push(readEnd, writeEnd);
    setNonblocking(writeEnd);
    expect(() => writeAll(writeEnd, new Uint8Array(1 << 21), "the pipe", 20)).toThrow(
      "write the pipe: connection timed out",
    );
  } finally {
    for (const fd of open) closeFile(fd);
    rmSync(directory, { recursive: true });
  }
});
