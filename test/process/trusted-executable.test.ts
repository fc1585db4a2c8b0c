/** What is executed is what was judged, under its own name; and nothing is executed that everybody could have put there. */
import { afterEach, beforeEach, expect, mock, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import * as running from "../../src/process/run-program.ts";

/** Between the look at a file and its execution. */
let meanwhile = () => {};
const { runProgram } = running;
mock.module("../../src/process/run-program.ts", () => ({
  ...running,
  runProgram: (...how: Parameters<typeof runProgram>) => {
    meanwhile();
    return runProgram(...how);
  },
}));
const { NOT_EVERYBODYS, onlyOurs, runTrusted, withJudged } = await import("../../src/process/trusted-executable.ts");

let directory: string, bin: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/trusted-`);
  mkdirSync(bin = `${directory}/bin`);
});
afterEach(() => {
  meanwhile = () => {};
  rmSync(directory, { recursive: true });
});

function run(path: string, ...args: string[]): string {
  const environment = ["PATH=/usr/bin:/bin", "A=1"].map(utf8);
  const { ending, stdout, stderr } = runTrusted({ path, argv: [path, ...args], environment }, utf8("in"));
  return fromUtf8(stdout) + fromUtf8(stderr) + ("exitStatus" in ending && ending.exitStatus === 0 ? "" : "failed");
}

function script(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

test("a script knows its name, finds what is beside it, and can run itself again", () => {
  mkdirSync(`${directory}/state`);
  writeFileSync(`${directory}/state/pear`, "ripe");
  const path = script(
    `${bin}/pear`,
    'cat; [ "$1" = again ] && exec "$0"; echo " ${0##*/} $(cat "${0%/*}/../state/pear") $(cat /proc/$$/comm)"',
  );
  expect(run(path)).toBe("in pear ripe pear\n");
  expect(run(path, "again")).toBe("in pear ripe pear\n");
});

test("a program has its name in argv[0] and in /proc, also through a link, and gets no descriptor of ours", () => {
  copyFileSync("/bin/busybox", `${bin}/busybox`);
  symlinkSync("busybox", `${bin}/cat`);
  symlinkSync(`${bin}/cat`, `${bin}/ls`);
  symlinkSync(`${bin}/busybox`, `${directory}/ls`);
  expect(run(`${bin}/cat`, "/proc/self/comm", "-")).toBe("cat\nin");
  for (const path of [`${bin}/ls`, `${directory}/ls`]) {
    expect(run(path, "-l", "/proc/self/fd")).not.toContain(directory);
  }
  expect(run(`${bin}/cat`, "/proc/self/cmdline")).toBe(`${bin}/cat\0/proc/self/cmdline\0`);
});

test("a relative path, a path through links of directories, and a chain of links", () => {
  const path = script(`${bin}/pear`, "echo ${0##*/}");
  symlinkSync("bin", `${directory}/linked`);
  symlinkSync("../bin/pear", `${bin}/one`);
  symlinkSync(`${directory}/linked/one`, `${bin}/two`);
  const before = process.cwd();
  process.chdir(bin);
  try {
    expect(["pear", "./two", `${directory}/linked/two`, `${bin}//one`, path].map((each) => run(each))).toEqual(
      ["pear\n", "two\n", "two\n", "one\n", "pear\n"],
    );
  } finally {
    process.chdir(before);
  }
});

test("what cannot be executed is told in the kernel's words, and every descriptor is closed again", () => {
  const open = () => readdirSync("/proc/self/fd").length;
  symlinkSync("loop", `${bin}/loop`);
  writeFileSync(`${bin}/plain`, "");
  writeFileSync(`${bin}/empty`, "", { mode: 0o755 });
  mkdirSync(`${bin}/directory`);
  const before = open();
  const says: [name: string, error: string][] = [
    ["missing", "no such file or directory"],
    ["no/directory", "no such file or directory"],
    ["plain/file", "not a directory"],
    ["loop", "too many levels of symbolic links"],
    ["plain", "permission denied"],
    ["directory", "permission denied"],
  ];
  for (const [name, error] of says) {
    expect(() => run(`${bin}/${name}`)).toThrow(`fork/exec ${bin}/${name}: ${error}`);
  }
  expect(open()).toBe(before);
});

test("a directory that takes the place of the one that was judged is not looked into", () => {
  const path = script(`${bin}/pear`, "echo judged");
  copyFileSync("/bin/echo", `${bin}/echo`);
  const other = `${directory}/other`;
  mkdirSync(other);
  for (const name of ["pear", "echo"]) script(`${other}/${name}`, "echo exchanged");
  meanwhile = () => {
    renameSync(bin, `${directory}/before`);
    renameSync(other, bin);
  };
  expect(run(path)).toBe("judged\n");
  renameSync(bin, other);
  renameSync(`${directory}/before`, bin);
  expect(run(`${bin}/echo`, "judged")).toBe("judged\n");
});

test("while an installer writes the file, each attempt judges it again", () => {
  const path = script(`${bin}/pear`, "echo ran");
  const writing = openSync(path, "r+");
  let attempts = 0;
  meanwhile = () => {
    if (++attempts === 1) chmodSync(path, 0o757);
  };
  expect(() => run(path)).toThrow(`${path} is not executed: everybody may write to it (chmod o-w ${path})`);
  expect(attempts).toBe(1);
  closeSync(writing);
});

test("what nobody names has to be root's or our own, and nobody else's to write", () => {
  const path = script(`${bin}/pear`, "");
  const trusted = () => withJudged(path, onlyOurs(), () => "trusted");
  expect(trusted()).toBe("trusted");
  for (const each of [path, bin]) {
    chmodSync(each, 0o775);
    expect(trusted).toThrow(`${each} is not executed: its group may write to it (chmod g-w ${each})`);
    expect(withJudged(path, NOT_EVERYBODYS, () => "trusted")).toBe("trusted");
    chmodSync(each, 0o1757);
    for (const rule of [onlyOurs(), NOT_EVERYBODYS]) {
      expect(() => withJudged(path, rule, () => {})).toThrow(`${each} is not executed: everybody may write to it`);
    }
    chmodSync(each, 0o755);
  }
});

test("where the first descriptors are free, they are left for the program", () => {
  const path = script(`${bin}/pear`, "cat");
  const body = `
    import { closeFile } from "${import.meta.dir}/../../src/ffi/files.ts";
    import { fromUtf8, utf8 } from "${import.meta.dir}/../../src/ffi/libc.ts";
    import { NOT_EVERYBODYS, runTrusted, withJudged } from "${import.meta.dir}/../../src/process/trusted-executable.ts";
    closeFile(0);
    const path = ${JSON.stringify(path)};
    const numbers = withJudged(path, NOT_EVERYBODYS, ({ directory, file }) => [directory, file]);
    const { stdout } = runTrusted({ path, argv: [path], environment: [utf8("PATH=/usr/bin:/bin")] }, utf8("in"));
    console.log(JSON.stringify([numbers.every((fd) => fd >= 3), fromUtf8(stdout)]));`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", body]);
  expect([stderr.toString(), JSON.parse(stdout.toString())]).toEqual(["", [true, "in"]]);
});
