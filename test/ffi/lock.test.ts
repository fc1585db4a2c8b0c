/** Locks on ranges of bytes, between descriptors and between processes; the lease store and the runtime rely on them. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeFile, O_CREAT, O_RDWR, openFile } from "../../src/ffi/files.ts";
import {
  lockExclusive,
  lockRangeExclusive,
  lockRangeShared,
  lockShared,
  tryLockRangeExclusive,
  unlock,
  unlockRange,
} from "../../src/ffi/lock.ts";
import { isAsleep } from "../support/asleep.ts";

function emptyFile(): { path: string; fd: number } & Disposable {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-lock-"));
  const path = join(directory, "file");
  const fd = openFile(path, O_RDWR | O_CREAT);
  return {
    path,
    fd,
    [Symbol.dispose]() {
      closeFile(fd);
      rmSync(directory, { recursive: true });
    },
  };
}

test("locks hold between descriptors, byte by byte, also beyond 4 GiB", () => {
  using made = emptyFile();
  const other = openFile(made.path, O_RDWR);
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
  using made = emptyFile();
  lockRangeExclusive(made.fd, { start: 5 });
  const source = `
    import { O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { lockRangeShared } from "${import.meta.dir}/../../src/ffi/lock.ts";
    lockRangeShared(openFile(${JSON.stringify(made.path)}, O_RDWR), { start: 5 });
    console.log("shared");`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  while (child.exitCode === null && !isAsleep(child.pid)) await Bun.sleep(5);
  expect(child.exitCode).toBeNull();
  unlockRange(made.fd, { start: 5 });
  expect(await child.stdout.text()).toBe("shared\n");
});

test("the kernel drops the lock of a process that is killed", async () => {
  using made = emptyFile();
  const source = `
    import { O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { lockRangeExclusive } from "${import.meta.dir}/../../src/ffi/lock.ts";
    lockRangeExclusive(openFile(${JSON.stringify(made.path)}, O_RDWR), { start: 5 });
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
  using made = emptyFile();
  const other = openFile(made.path, O_RDWR);
  if (kind.includes("range")) lockRangeExclusive(other, { start: 5 });
  else lockExclusive(other);
  const holder = kind.includes("range") ? "another process" : `process ${process.pid} \\(.+\\)`;
  expect(() => lock(made.fd, 20)).toThrow(
    new RegExp(`^${made.path}: locked by ${holder} for more than 0.02 s; see what that waits for, or end it$`),
  );
  release(other);
  lock(made.fd, 20);
  closeFile(other);
});
