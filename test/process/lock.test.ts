/** Locks on ranges of bytes, between descriptors and between processes; the lease store and the runtime rely on them. */
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { closeFile, O_DIRECTORY, O_RDONLY, O_RDWR, openFile } from "../../src/ffi/files.ts";
import {
  lockExclusive,
  lockRangeExclusive,
  lockRangeShared,
  lockShared,
  tryLockExclusive,
  tryLockRangeExclusive,
  tryLockShared,
  unlock,
  unlockRange,
  whileDirectoryLocked,
  whileLocked,
} from "../../src/process/lock.ts";
import { isAsleep } from "../support/asleep.ts";
import { closing } from "../support/closing.ts";
import { OpenScratchFile } from "../support/scratch-file.ts";

test("locks hold between descriptors, byte by byte, also beyond 4 GiB", () => {
  using made = new OpenScratchFile();
  const other = openFile(made.file, O_RDWR);
  for (const offset of [0, 7, 2 ** 32 - 1, 2 ** 32]) {
    expect(tryLockRangeExclusive(made.fd, { start: offset })).toBe(true);
    expect(tryLockRangeExclusive(other, { start: offset })).toBe(false);
    expect(tryLockRangeExclusive(other, { start: offset + 1 })).toBe(true);
    unlockRange(other, { start: offset + 1 });
    unlockRange(made.fd, { start: offset });
    expect(tryLockRangeExclusive(other, { start: offset })).toBe(true);
    unlockRange(other, { start: offset });
  }
  lockRangeShared(made.fd, { start: 0 });
  lockRangeShared(other, { start: 0 });
  expect(tryLockRangeExclusive(made.fd, { start: 0 })).toBe(false);
  closeFile(other);
  expect(tryLockRangeExclusive(made.fd, { start: 0 })).toBe(true);
});

test("who has a byte alone keeps out those who would share it", async () => {
  using made = new OpenScratchFile();
  lockRangeExclusive(made.fd, { start: 5 });
  const source = `
    import { O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { lockRangeShared } from "${import.meta.dir}/../../src/process/lock.ts";
    lockRangeShared(openFile(${JSON.stringify(made.file)}, O_RDWR), { start: 5 });
    console.log("shared");`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  while (child.exitCode === null && !isAsleep(child.pid)) await Bun.sleep(5);
  expect(child.exitCode).toBeNull();
  unlockRange(made.fd, { start: 5 });
  expect(await child.stdout.text()).toBe("shared\n");
});

test("the kernel drops the lock of a process that is killed", async () => {
  using made = new OpenScratchFile();
  const source = `
    import { O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { lockRangeExclusive } from "${import.meta.dir}/../../src/process/lock.ts";
    lockRangeExclusive(openFile(${JSON.stringify(made.file)}, O_RDWR), { start: 5 });
    console.log("locked");
    setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  await child.stdout.getReader().read();
  expect(tryLockRangeExclusive(made.fd, { start: 5 })).toBe(false);
  child.kill("SIGKILL");
  await child.exited;
  lockRangeExclusive(made.fd, { start: 5 });
});

const locks: [kind: string, lock: (fd: number, patienceMs?: number) => unknown, release: (fd: number) => void][] = [
  ["shared", (fd, patienceMs) => lockShared(fd, patienceMs), unlock],
  ["exclusive", (fd, patienceMs) => lockExclusive(fd, undefined, patienceMs), unlock],
  ["shared, of a range", (fd, ms) => lockRangeShared(fd, { start: 5 }, ms), (fd) => unlockRange(fd, { start: 5 })],
  [
    "exclusive, of a range",
    (fd, ms) => lockRangeExclusive(fd, { start: 5 }, ms),
    (fd) => unlockRange(fd, { start: 5 }),
  ],
];

test.each(locks)("waiting for a lock has an end, which says who holds it: %s", (kind, lock, release) => {
  using made = new OpenScratchFile();
  const other = openFile(made.file, O_RDWR);
  if (kind.includes("range")) lockRangeExclusive(other, { start: 5 });
  else lockExclusive(other);
  const holder = kind.includes("range") ? "another process" : `process ${process.pid} \\(.+\\)`;
  expect(() => lock(made.fd, 20)).toThrow(
    new RegExp(`^${made.file}: locked by ${holder} for more than 0.02 s; see what that waits for, or end it$`),
  );
  release(other);
  lock(made.fd, 20);
  closeFile(other);
});

/** The time is what the list says, look by look; `meanwhile` happens at the last one. */
function atTimes<T>(times: number[], meanwhile: () => void, work: () => T): T {
  const { now } = performance;
  performance.now = () => {
    const [time] = times.length > 1 ? times.splice(0, 1) : times;
    if (times.length === 1) meanwhile();
    return time!;
  };
  try {
    return work();
  } finally {
    performance.now = now;
  }
}

test.each(locks)("a lock that becomes free before the time is over is taken: %s", (kind, lock, release) => {
  using made = new OpenScratchFile();
  const other = openFile(made.file, O_RDWR);
  if (kind.includes("range")) lockRangeExclusive(other, { start: 5 });
  else lockExclusive(other);
  atTimes([100_000, 100_010, 100_020, 100_020], () => release(other), () => lock(made.fd, 20));
  closeFile(other);
});

test("who asks without waiting gets the lock or an answer, shared or not", () => {
  using made = new OpenScratchFile();
  const other = openFile(made.file, O_RDWR);
  expect(tryLockExclusive(other)).toBe(true);
  expect([tryLockShared(made.fd), tryLockExclusive(made.fd)]).toEqual([false, false]);
  unlock(other);
  expect([tryLockShared(made.fd), tryLockShared(other), tryLockExclusive(other)]).toEqual([true, true, false]);
  unlock(made.fd);
  expect(tryLockExclusive(other)).toBe(true);
  closeFile(other);
  expect(whileLocked(made.fd, "file", () => heldBy(made.file))).toBe(true);
  expect(heldBy(made.file)).toBe(false);
});

function heldBy(path: string): boolean {
  const fd = openFile(path, O_RDWR);
  try {
    return !tryLockExclusive(fd);
  } finally {
    closeFile(fd);
  }
}

test("a directory is made, and locked while work is done in it", () => {
  using made = new OpenScratchFile();
  const directory = `${made.file}s/below`;
  const isLocked = () => {
    const fd = openFile(directory, O_RDONLY | O_DIRECTORY);
    try {
      return !tryLockShared(fd);
    } finally {
      closeFile(fd);
    }
  };
  expect(closing(directory, () => whileDirectoryLocked(directory, isLocked))).toBe(true);
  expect([isLocked(), statSync(directory).mode]).toEqual([false, 0o40755]);
});

test("a lock that cannot be is an error, or none where others share it", () => {
  expect(() => lockExclusive(-1, "nothing")).toThrow("flock nothing: bad file descriptor");
  expect(lockShared(-1)).toBe(false);
  expect(() => tryLockRangeExclusive(-1, { start: 0 })).toThrow(
    "fcntl F_OFD_SETLK descriptor -1: bad file descriptor",
  );
  expect(() => unlockRange(-1, { start: 0 })).toThrow("fcntl F_OFD_SETLK: bad file descriptor");
  expect(() => whileLocked(-1, "nothing", () => {})).toThrow("flock nothing: bad file descriptor");
});

test("a range is as long as it says, and one of no length has no end", () => {
  using made = new OpenScratchFile();
  const other = openFile(made.file, O_RDWR);
  const isFree = (start: number) => {
    const free = tryLockRangeExclusive(other, { start });
    if (free) unlockRange(other, { start });
    return free;
  };
  lockRangeExclusive(made.fd, { start: 10, length: 3 });
  expect([9, 10, 12, 13].map(isFree)).toEqual([true, false, false, true]);
  unlockRange(made.fd, { start: 10, length: 3 });
  lockRangeExclusive(made.fd, { start: 10, length: 0 });
  expect([9, 10, 2 ** 40].map(isFree)).toEqual([true, false, false]);
  closeFile(other);
});
