/** Small files: opened, read to their end whatever their size, and written or replaced as a whole. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  createFile,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openExisting,
  openFile,
  readAll,
  readAllFrom,
  readAt,
  readConfiguredFile,
  readTextFile,
  replaceFile,
  syncDirectory,
  truncateFile,
  writeAll,
  writerId,
} from "../../src/ffi/files.ts";
import { fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import { setNonblocking } from "../../src/ffi/descriptors.ts";
import { openPipe } from "../../src/ffi/spawn.ts";
import { closing } from "../support/closing.ts";
import { ScratchFile } from "../support/scratch-file.ts";

let scratch: ScratchFile, directory: string, file: string;
beforeEach(() => ({ directory, file } = scratch = new ScratchFile()));
afterEach(() => scratch[Symbol.dispose]());

describe("opening", () => {
  test("what is not there, or cannot be because of its name, is undefined; another failure is one", () => {
    expect(openExisting(file, O_RDONLY)).toBeUndefined();
    expect(openExisting(join(directory, "x".repeat(256)), O_RDONLY)).toBeUndefined();
    writeFileSync(file, "");
    expect(() => openExisting(`${file}/below`, O_RDONLY)).toThrow(`open ${file}/below: not a directory`);
    symlinkSync("file", `${file}2`);
    expect(() => openFile(`${file}2`, O_RDONLY | O_NOFOLLOW)).toThrow("too many levels of symbolic links");
    expect(() => openFile(file, O_RDONLY | O_DIRECTORY)).toThrow("not a directory");
    expect(() => openFile(`${directory}/none`, O_RDONLY)).toThrow(
      `open ${directory}/none: no such file or directory`,
    );
  });

  test("a new file is its owner's alone, and takes the place of what was left", () => {
    writeFileSync(file, "left");
    symlinkSync("elsewhere", `${file}2`);
    for (const path of [file, `${file}2`]) {
      closeSync(createFile(path, O_WRONLY));
      expect(lstatSync(path).mode).toBe(0o100600);
      expect(readFileSync(path, "utf8")).toBe("");
    }
    expect(existsSync(join(directory, "elsewhere"))).toBe(false);
    mkdirSync(`${file}3`);
    expect(() => createFile(`${file}3`, O_WRONLY)).toThrow(`unlink ${file}3: is a directory`);
  });
});

const text = (length: number) => Array.from({ length }, (_, index) => String.fromCharCode(97 + index % 26)).join("");

describe("reading", () => {
  test.each([0, 1, 8191, 8192, 8193, 32768, 40000, 131073])("all of %d bytes, asked for in any way", (length) => {
    writeFileSync(file, text(length));
    expect(readTextFile(file)).toBe(text(length));
    for (const expected of [undefined, length, Math.max(0, length - 1), length + 5]) {
      expect(fromUtf8(scratch.withFile((fd) => readAll(fd, undefined, file, expected)))).toBe(text(length));
    }
    expect(fromUtf8(scratch.withFile((fd) => readAll(fd, length + 1, file, length)))).toBe(text(length));
  });

  test("no more than the limit", () => {
    writeFileSync(file, text(10_000));
    const read = (limit: number, expected?: number) =>
      scratch.withFile((fd) => readAll(fd, limit, file, expected).length);
    expect(read(10_001)).toBe(10_000);
    expect(() => read(10_000)).toThrow(`read ${file}: file too large`);
    expect(read(10_000, 10_000)).toBe(10_000);
    expect(() => read(9999, 10_000)).toThrow(`read ${file}: file too large`);
    expect(() => read(8192)).toThrow("file too large");
    expect(() => scratch.withFile((fd) => readAll(fd, undefined, file), "a")).toThrow(
      `read ${file}: bad file descriptor`,
    );
  });

  test("where its size is known, it is not asked for more behind the end, but a file that grew is read whole", () => {
    writeFileSync(file, text(100));
    const asked = (expected?: number) => {
      let times = 0;
      scratch.withFile((fd) => readAll(fd, undefined, file, expected, () => void times++));
      return times;
    };
    expect([asked(100), asked(), asked(99)]).toEqual([1, 2, 2]);
  });

  test("from a place on, the descriptor's own place stays", () => {
    writeFileSync(file, text(9000));
    scratch.withFile((fd) => {
      readSync(fd, Buffer.alloc(3));
      expect(fromUtf8(readAllFrom(5, fd, file))).toBe(text(9000).slice(5));
      const two = new Uint8Array(2);
      expect([readAt(fd, two, 8999), two[0]]).toEqual([1, text(9000).charCodeAt(8999)]);
      expect(readAt(-1, two, 0)).toBe(-1);
      expect(fromUtf8(readAll(fd))).toBe(text(9000).slice(3));
    });
  });

  test("a file of a process has gone when that has ended", async () => {
    const child = Bun.spawn(["sleep", "1000"], { stdio: ["ignore", "ignore", "ignore"] });
    const fd = openSync(`/proc/${child.pid}/status`, "r"), before = readTextFile(`/proc/self/fd/${fd}`);
    child.kill("SIGKILL");
    await child.exited;
    expect(before).toContain(`Pid:\t${child.pid}\n`);
    expect(readTextFile(`/proc/self/fd/${fd}`)).toBeUndefined();
    closeSync(fd);
    expect(() => closing(directory, () => readTextFile(directory))).toThrow(`read ${directory}: is a directory`);
  });

  test("a file that a configuration names is a regular one, and not too long", () => {
    expect(readConfiguredFile(file)).toBeUndefined();
    writeFileSync(file, "text");
    symlinkSync("file", `${file}2`);
    expect(closing(directory, () => readConfiguredFile(`${file}2`))).toBe("text");
    writeFileSync(file, text(9000));
    expect(() => closing(directory, () => readConfiguredFile(file, 9000))).toThrow(`read ${file}: file too large`);
    for (const path of ["/dev/null", directory]) {
      expect(() => readConfiguredFile(path)).toThrow(`open ${path}: not a regular file: invalid argument`);
    }
    truncateSync(file, 1024 * 1024 - 1);
    expect(readConfiguredFile(file)).toHaveLength(1024 * 1024 - 1);
    truncateSync(file, 1024 * 1024 + 1);
    expect(() => readConfiguredFile(file)).toThrow("file too large");
  });
});

describe("writing", () => {
  test("every byte goes to a pipe that is full again and again", async () => {
    const [readEnd, writeEnd] = openPipe();
    setNonblocking(writeEnd);
    const reader = Bun.spawn(["sha256sum"], { stdin: readEnd, stdout: "pipe" });
    closeSync(readEnd);
    const bytes = utf8(text(1_000_000));
    writeAll(writeEnd, bytes, "the pipe");
    closeSync(writeEnd);
    expect(await reader.stdout.text()).toStartWith(new Bun.CryptoHasher("sha256").update(bytes).digest("hex"));
  });

  test("a failure names what could not be written", () => {
    writeFileSync(file, "");
    expect(() => scratch.withFile((fd) => writeAll(fd, utf8("x"), file))).toThrow(
      `write ${file}: bad file descriptor`,
    );
  });

  test("a file is replaced by another of the mode, or not at all", () => {
    writeFileSync(file, "old");
    scratch.withFile((old) => {
      closing(directory, () => replaceFile(file, "new", { mode: 0o640 }));
      expect(readFileSync(old, "utf8")).toBe("old");
    });
    expect([readFileSync(file, "utf8"), statSync(file).mode]).toEqual(["new", 0o100640]);
    closing(directory, () => replaceFile(file, "newer", { durable: true, temporary: `${file}~` }));
    expect([readFileSync(file, "utf8"), statSync(file).mode]).toEqual(["newer", 0o100600]);

    mkdirSync(`${file}2/below`, { recursive: true });
    expect(() => closing(directory, () => replaceFile(`${file}2`, "new"))).toThrow(`rename ${file}2: is a directory`);
    expect(readdirSync(directory).sort()).toEqual(["file", "file2"]);
  });

  test("the temporary file is this process's", () => {
    expect(writerId()).toBe(String(process.pid));
    mkdirSync(`${file}.${process.pid}.tmp`);
    expect(() => replaceFile(file, "")).toThrow(`unlink ${file}.${process.pid}.tmp: is a directory`);
  });

  test("a file is cut off", () => {
    writeFileSync(file, "text");
    scratch.withFile((fd) => truncateFile(fd, 2, file), "r+");
    expect(readFileSync(file, "utf8")).toBe("te");
    expect(() => scratch.withFile((fd) => truncateFile(fd, 2, file))).toThrow(`ftruncate ${file}: invalid argument`);
  });

  test("a directory is brought to the disk as long as it is one", () => {
    closing(directory, () => syncDirectory(directory));
    writeFileSync(file, "");
    expect(() => syncDirectory(file)).toThrow(`open ${file}: not a directory`);
  });
});
