/** The build moves the program's code within the file, and the program still runs. */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alignCode } from "../../compile/align-code.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-align-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Segment {
  executable: boolean;
  offset: number;
  address: number;
  sizeBytes: number;
}

function loadable(program: Uint8Array): Segment[] {
  const view = new DataView(program.buffer, program.byteOffset);
  const u64 = (at: number) => Number(view.getBigUint64(at, true));
  return Array.from({ length: view.getUint16(56, true) }, (_, index) => u64(32) + index * view.getUint16(54, true))
    .filter((at) => view.getUint32(at, true) === 1)
    .map((at) => ({
      executable: (view.getUint32(at + 4, true) & 1) !== 0,
      offset: u64(at + 8),
      address: u64(at + 16),
      sizeBytes: u64(at + 32),
    }));
}

test(
  "alignCode() lets address and place in the file of the code agree modulo 2 MiB, and the program still runs",
  () => {
    const before = readFileSync(process.execPath);
    const after = alignCode(before);
    const segments = loadable(after);
    const code = segments.find(({ executable }) => executable)!;
    expect((code.address - code.offset) % (2 * 1024 * 1024)).toBe(0);

    // Everything stands at the address it stood at, with the bytes it had.
    loadable(before).forEach((segment, index) => {
      const moved = segments[index]!;
      expect(moved.address).toBe(segment.address);
      const bytes = (program: Uint8Array, { offset, sizeBytes }: Segment) =>
        Bun.hash(index === 0 ? program.subarray(4096, sizeBytes) : program.subarray(offset, offset + sizeBytes));
      expect(bytes(after, moved)).toBe(bytes(before, segment));
    });

    const program = join(directory, "bun");
    writeFileSync(program, after);
    chmodSync(program, 0o755);
    const run = Bun.spawnSync([program, "-e", "console.log(6 * 7)"], { stdout: "pipe" });
    expect(run.stdout.toString()).toBe("42\n");
  },
  60_000,
);

test("alignCode() changes nothing that is aligned already", () => {
  const once = alignCode(readFileSync(process.execPath));
  expect(Bun.hash(alignCode(once))).toBe(Bun.hash(once));
}, 300_000);
