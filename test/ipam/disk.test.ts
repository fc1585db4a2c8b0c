/**
 * The lease store on disks that are full, out of inodes or read-only, each a tmpfs in its own mount namespace; and on one
 * that fails.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { add, leaseDirectory, rangeSet } from "../support/lease-directory.ts";
import type { Steps } from "../support/lease-worker.ts";
import { needs } from "../support/needs.ts";

needs("root", "strace");

const WORKER = join(import.meta.dir, "../support/lease-worker.ts");
const TOP = mkdtempSync(join(tmpdir(), "patchbay-disk-"));
const DIRECTORY = join(TOP, "net");
afterAll(() => rmSync(TOP, { recursive: true }));

/** Runs the steps on a file system made with `mountOptions`, and answers what each answered. */
function onDisk(mountOptions: string, subnet: string, steps: string[]): unknown[] {
  const task: Steps = { directory: DIRECTORY, subnet, steps };
  const script = `mount -t tmpfs -o ${mountOptions} tmpfs ${TOP} && exec "$@"`;
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    ["unshare", "--mount", "sh", "-c", script, "sh", process.execPath, WORKER, "steps", JSON.stringify(task)],
    { stdout: "pipe", stderr: "pipe" },
  );
  expect(stderr.toString()).toBe("");
  expect(exitCode).toBe(0);
  return JSON.parse(stdout.toString());
}

const fill = `sh cat /dev/zero >${TOP}/filler 2>/dev/null || true`;
const drain = `sh rm ${TOP}/filler`;
const listAll = `sh cd ${DIRECTORY}; find . ! -type d | sort | tr '\\n' ' '`;
const list = `sh cd ${DIRECTORY}; ls | tr '\\n' ' '`;

test("a disk too small for the index: the error names the file, and nothing is left", () => {
  const answers = onDisk("size=256k", "10.1.0.0/16", ["add c1", listAll, "del c1"]);
  expect(answers).toEqual([
    `SyscallError: posix_fallocate ${DIRECTORY}/.patchbay/10.1.0.0-16.new: no space left on device`,
    "0 ./.patchbay/locks",
    0,
  ]);
});

test("a disk that is full when a lease is to be written: nothing is half-claimed, and DEL works", () => {
  const answers = onDisk("size=64k", "10.1.0.0/29", [
    "add c1",
    fill,
    "add c2",
    list,
    "del c1",
    list,
    drain,
    "add c2",
  ]);
  expect(answers).toEqual([
    "10.1.0.2",
    "0",
    `SyscallError: write ${DIRECTORY}/10.1.0.3: no space left on device`,
    "0 10.1.0.2 last_reserved_ip.0",
    1,
    "0 last_reserved_ip.0",
    "0",
    "10.1.0.3",
  ]);
});

test("a disk without inodes left", () => {
  // The root, the network, .patchbay, locks, a block, the cursor: room for two leases.
  const answers = onDisk("nr_inodes=8", "10.1.0.0/29", ["add c1", "add c2", "add c3", list, "del c1", "add c3"]);
  expect(answers).toEqual([
    "10.1.0.2",
    "10.1.0.3",
    `SyscallError: open ${DIRECTORY}/10.1.0.4: no space left on device`,
    "0 10.1.0.2 10.1.0.3 last_reserved_ip.0",
    1,
    "10.1.0.4",
  ]);
});

test("no room for the cursor: the address is given, and the operator told", () => {
  const answers = onDisk("nr_inodes=6", "10.1.0.0/29", ["add c1", "del c1"]);
  const note = "10.1.0.2 was given out, but the next ADD may not go on behind it: " +
    `open ${DIRECTORY}/last_reserved_ip.0: no space left on device`;
  expect(answers).toEqual(["10.1.0.2", 1, note]);
});

test("a disk that is read-only: ADD fails, DEL fails for what it cannot remove, and succeeds for what is not there", () => {
  const readOnly = `sh mount -o remount,ro ${TOP}`;
  const writable = `sh mount -o remount,rw ${TOP}`;
  const answers = onDisk("size=1m", "10.1.0.0/29", [
    "add c1",
    readOnly,
    "add c2",
    "del c1",
    "del c2",
    writable,
    "del c1",
  ]);
  expect(answers).toEqual([
    "10.1.0.2",
    "0",
    `SyscallError: open ${DIRECTORY}/.patchbay/locks: read-only file system`,
    `SyscallError: unlink ${DIRECTORY}/10.1.0.2: read-only file system`,
    0,
    "0",
    1,
  ]);
});

test("a disk that does not say how many names the locks have: they count as named", () => {
  using made = leaseDirectory();
  const subnet = "10.1.0.0/29", locks = `${made.path}/.patchbay/locks`;
  add(made, rangeSet(subnet), "c1");
  // The first answer, which says whose file it is, is right.
  const failing = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", locks, "-e", "inject=statx:error=EIO:when=2+"];
  const task: Steps = { directory: made.path, subnet, steps: ["add c2"] };
  const { stdout } = Bun.spawnSync([...failing, process.execPath, WORKER, "steps", JSON.stringify(task)]);
  expect(JSON.parse(stdout.toString())).toEqual(["10.1.0.3"]);
});
