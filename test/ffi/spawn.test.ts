/**
 * Child processes get the descriptors and environment they should have, and their output and exit status are not
 * lost.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { ENOENT, isErrno } from "../../src/ffi/errno.ts";
import { fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import { runProgram } from "../../src/process/run-program.ts";
import { forgetEnded, spawn, waitFor } from "../../src/ffi/spawn.ts";
import { closeFile, openFile } from "../../src/ffi/files.ts";
import { outcomeOf } from "../support/outcome.ts";

const sh = (script: string, stdin = "", environment = ["PATH=/usr/bin:/bin"]) => {
  const finished = runProgram(
    { path: "/bin/sh", argv: ["sh", "-c", script], environment: environment.map(utf8) },
    utf8(stdin),
  );
  return { ending: finished.ending, stdout: fromUtf8(finished.stdout), stderr: fromUtf8(finished.stderr) };
};

test("stdin goes in, stdout and stderr come out apart, and the exit status is told", () => {
  expect(sh("cat; echo problem >&2; exit 7", "in"))
    .toEqual({ ending: { exitStatus: 7 }, stdout: "in", stderr: "problem\n" });
});

test("a signal is told from an exit status", () => {
  expect(sh("kill -KILL $$").ending).toEqual({ signal: 9 });
});

test("more than the pipes hold goes through in both directions at once", () => {
  const megabytes = "0123456789abcdef".repeat(3 * 65536);
  const { stdout, stderr } = sh("tee /dev/stderr", megabytes);
  expect(stdout.length).toBe(megabytes.length);
  expect(stdout === megabytes && stderr === megabytes).toBe(true);
});

test("a child that does not read its stdin is no error", () => {
  expect(sh("exec 0<&-; echo done", "x".repeat(1 << 20)).stdout).toBe("done\n");
});

test.each([
  ["silent", "exec sleep 20"],
  ["without outputs", "exec sleep 20 0<&- >&- 2>&-"],
  ["never silent", "while :; do echo more; done"],
  ["deaf to signals", "trap '' TERM INT HUP; while :; do sleep 20; done"],
])("a tool that hangs is killed, and said: one that is %s", (_, script) => {
  const program = { path: "/bin/sh", argv: ["sh", "-c", script], environment: [utf8("PATH=/usr/bin:/bin")] };
  const run = () => runProgram({ ...program, patienceMs: 50 }, new Uint8Array());
  expect(run).toThrow(/^\/bin\/sh \(process [0-9]+\) had not ended after 0.05 s, and was killed$/);
  expect(forgetEnded()).toEqual({ ended: [], areRunning: false });
});

test("a grandchild that keeps the pipes open is not waited for", () => {
  const { stdout } = sh("sleep 1000 & echo $!");
  process.kill(Number(stdout), "SIGKILL");
});

test("the grandchildren of one that has failed may say why, for so long; those of one that has not are left alone", () => {
  const program = (script: string) => ({ path: "/bin/sh", argv: ["sh", "-c", script], environment: [] });
  const run = (script: string, heirsMs: number) => runProgram({ ...program(script), heirsMs }, new Uint8Array());
  // $$ exists until it is waited for.
  const later = "(while kill -0 $$ 2>/dev/null; do :; done; echo why >&2) &";
  expect(fromUtf8(run(`${later} exit 1`, 60_000).stderr)).toBe("why\n");
  for (const [status, heirsMs] of [[0, 1_000_000], [1, 20]] as const) {
    const { stdout, ending } = run(`sleep 1000 & echo $!; exit ${status}`, heirsMs);
    process.kill(Number(fromUtf8(stdout)), "SIGKILL");
    expect(ending).toEqual({ exitStatus: status });
  }
});

test("outputs are pipes that a script can open again by name", () => {
  expect(sh("echo out >/dev/stdout; echo err >/dev/stderr")).toMatchObject({ stdout: "out\n", stderr: "err\n" });
});

test("the environment is passed byte for byte", () => {
  const odd = Uint8Array.of(0x58, 0x3d, 0xff, 0xfe); // X=, then bytes that are no UTF-8
  const { stdout } = runProgram(
    { path: "/usr/bin/env", argv: ["env", "-0"], environment: [odd, utf8("A=1"), utf8("A=2")] },
    utf8(""),
  );
  expect([...stdout]).toEqual([...odd, 0, ...utf8("A=1\0A=2\0")]);
});

test("what Bun ignores is not ignored in the child", () => {
  const ignored = /^SigIgn:\s*(\w+)$/m.exec(sh("cat /proc/self/status").stdout)![1]!;
  expect(BigInt(`0x${ignored}`) & ((1n << 12n) | (1n << 24n))).toBe(0n);
});

test("a program that is not there is the kernel's error", () => {
  const nowhere = { path: "/nowhere/plugin", argv: ["plugin"], environment: [] };
  const failure = outcomeOf(() => runProgram(nowhere, utf8("")));
  expect(isErrno(failure, ENOENT)).toBe(true);
  expect((failure as Error).message).toBe("fork/exec /nowhere/plugin: no such file or directory");
});

test("no descriptor is left open, neither by success nor by failure", () => {
  const open = () => readdirSync("/proc/self/fd").length;
  sh("true");
  const before = open();
  for (let round = 0; round < 20; round++) {
    sh("echo x");
    expect(() => runProgram({ path: "/nowhere", argv: [""], environment: [] }, utf8("x"))).toThrow();
  }
  expect(open()).toBe(before);
});

test("spawn() places descriptors, and closes those that are undefined", () => {
  const file = openFile("/etc/hostname", 0);
  try {
    const script = '[ -e /proc/$$/fd/3 ] && [ ! -e /proc/$$/fd/1 ] && read line <&3 && [ -n "$line" ]';
    const pid = spawn({
      path: "/bin/sh",
      argv: ["sh", "-c", script],
      environment: [],
      descriptors: [0, undefined, 2, file],
    });
    expect(waitFor(pid)).toEqual({ exitStatus: 0 });
  } finally {
    closeFile(file);
  }
});
