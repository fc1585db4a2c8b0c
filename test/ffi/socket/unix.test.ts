/** Sockets of processes: their names, who may take one, and that connecting to one that nobody serves ends. */
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeFile, writeAll } from "../../../src/ffi/files.ts";
import { setNonblocking } from "../../../src/ffi/descriptors.ts";
import { openPipe } from "../../../src/ffi/spawn.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { receiveMessage, sendMessage } from "../../../src/ffi/socket/message.ts";
import { getOption, limitWait, SOCK_SEQPACKET, SOCK_STREAM } from "../../../src/ffi/socket/socket.ts";
import { acceptNext, connectTo, listenAt, listenOn, unixAddress } from "../../../src/ffi/socket/unix.ts";

/** With the path of a socket, and what is to be closed afterwards. */
function atPath(work: (path: string, open: number[]) => void): void {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-socket-")), open: number[] = [];
  try {
    work(join(directory, "socket"), open);
  } finally {
    for (const fd of open) closeFile(fd);
    rmSync(directory, { recursive: true });
  }
}

test("an address is the family and the name, of which an abstract one has no end", () => {
  expect(unixAddress("/a").toHex()).toBe("01002f6100");
  expect(unixAddress("\0a").toHex()).toBe("01000061");
  expect(unixAddress("x".repeat(107))).toHaveLength(110);
  expect(() => unixAddress("x".repeat(108))).toThrow(
    `socket ${"x".repeat(108)}: longer than 107 bytes: invalid argument`,
  );
});

test("who connects is accepted, and what is sent arrives, as messages where that is the type", () => {
  for (const type of [SOCK_STREAM, SOCK_SEQPACKET]) {
    atPath((path, open) => {
      const listening = listenAt(path, type);
      open.push(listening);
      expect(acceptNext(listening)).toBeUndefined();
      const ours = connectTo(path, 1000, type), theirs = acceptNext(listening)!;
      open.push(ours, theirs);
      const bytes = new Uint8Array(8), received = () => receiveMessage(theirs, bytes);
      // Nothing has come, and nobody waits for it.
      expect(received()).toBe(-1);
      for (const size of [1, 2]) sendMessage(ours, new Uint8Array(size));
      expect(received()).toBe(type === SOCK_STREAM ? 3 : 1);
      expect(acceptNext(listening)).toBeUndefined();
    });
  }
});

test("descriptors of sockets are closed in programs that are started", () => {
  const F_GETFD = 1, FD_CLOEXEC = 1;
  atPath((path, open) => {
    open.push(listenAt(path));
    open.push(connectTo(path), acceptNext(open[0]!)!);
    for (const fd of open) expect(libc.fcntl(fd, F_GETFD, null)).toBe(FD_CLOEXEC);
  });
});

test("a name is taken over when nobody listens on its socket any more, and only then", () => {
  atPath((path, open) => {
    const first = listenAt(path);
    expect(() => listenAt(path)).toThrow(`bind ${path}: address already in use`);
    closeFile(first);
    expect(() => listenAt(path, SOCK_STREAM, () => false)).toThrow(`bind ${path}: address already in use`);
    open.push(listenAt(path));
    open.push(connectTo(path));
    expect(acceptNext(open[0]!)).toBeGreaterThan(0);
  });
  atPath((path) => {
    writeFileSync(path, "a file");
    expect(() => listenAt(path)).toThrow(`bind ${path}: address already in use`);
    expect(existsSync(path)).toBe(true);
    expect(() => listenAt(`${path}/below`)).toThrow(`bind ${path}/below: not a directory`);
  });
});

test("where nobody listens, connecting fails at once, and is said of whom", () => {
  atPath((path) => {
    expect(() => connectTo(path)).toThrow(`connect ${path}: no such file or directory`);
    closeFile(listenAt(path));
    expect(() => connectTo(path, 1000, SOCK_STREAM, "the resident")).toThrow(
      "connect the resident: connection refused",
    );
    expect(() => listenOn(-1, path)).toThrow(`listen ${path}: bad file descriptor`);
    expect(() => acceptNext(-1)).toThrow("accept4: bad file descriptor");
  });
});

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

test("a wait is limited to whole seconds and parts of them", () => {
  atPath((path, open) => {
    const fd = listenAt(path);
    open.push(fd);
    for (const ms of [100, 1000, 2500, 60_000]) {
      limitWait(fd, "SO_RCVTIMEO", ms);
      const limit = new BigInt64Array(2);
      expect(getOption(fd, "SO_RCVTIMEO", limit)).toBe(true);
      expect(limit[0]! * 1_000_000n + limit[1]!).toBe(BigInt(ms) * 1000n);
    }
  });
});
