/** How the exit of another plugin is reported, in the reference library's words. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { runForeignPlugin } from "../../../src/engine/delegation/foreign-plugin.ts";
import { refusal } from "../../support/outcome.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(`${tmpdir()}/foreign-`)));
afterEach(() => rmSync(directory, { recursive: true }));

const invocation = {
  command: "ADD" as const,
  containerId: "ctr",
  netnsPath: "/run/netns/x",
  ifName: "eth0",
  cniArgs: "",
  path: "/opt/cni/bin",
  stdin: '{"name":"n"}',
};

function plugin(script: string): string {
  const path = `${directory}/plugin`;
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

function failure(path: string): { code: number; message: string; details: string } {
  const [code, message, details = ""] = refusal(() => runForeignPlugin(path, invocation));
  return { code, message, details };
}

test("success returns stdout, whatever is on stderr", () => {
  expect(runForeignPlugin(plugin("cat; echo note >&2"), invocation)).toBe(invocation.stdin);
});

test("parameters are set once each, even when empty", () => {
  const lines = runForeignPlugin(plugin("env | grep ^CNI_"), invocation).trimEnd().split("\n").sort();
  expect(lines).toEqual([
    "CNI_ARGS=",
    "CNI_COMMAND=ADD",
    "CNI_CONTAINERID=ctr",
    "CNI_IFNAME=eth0",
    "CNI_NETNS=/run/netns/x",
    "CNI_PATH=/opt/cni/bin",
  ]);
});

test("our environment is passed on, without the variables of the Bun runtime", () => {
  const module = new URL("../../../src/engine/delegation/foreign-plugin.ts", import.meta.url).pathname;
  const program = `
    const { runForeignPlugin } = require(${JSON.stringify(module)});
    process.stdout.write(runForeignPlugin(${JSON.stringify(plugin("env"))}, ${JSON.stringify(invocation)}));`;
  const env = { ...process.env, BUN_CONFIG_FILE: "/nowhere", KEPT: "as it is" };
  const { stdout } = Bun.spawnSync([process.execPath, "-e", program], { env });
  const lines = stdout.toString().split("\n");
  expect(lines).toContain("KEPT=as it is");
  expect(lines.filter((line) => line.startsWith("BUN_"))).toEqual([]);
});

const signals: Record<number, string> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  4: "illegal instruction",
  6: "aborted",
  7: "bus error",
  8: "floating point exception",
  9: "killed",
  10: "signal 10",
  11: "segmentation fault",
  13: "broken pipe",
  15: "terminated",
};

test("a signal has Go's name", () => {
  for (const [number, name] of Object.entries(signals)) {
    const message = `netplugin failed with no error message: signal: ${name}`;
    expect(failure(plugin(`ulimit -c 0; kill -${number} $$`)).message).toBe(message);
  }
});

test("stderr is handed on, unless the error has it already", () => {
  const module = new URL("../../../src/engine/delegation/foreign-plugin.ts", import.meta.url).pathname;
  const stderrOf = (script: string) => {
    const program = `
      const { runForeignPlugin } = require(${JSON.stringify(module)});
      try { runForeignPlugin(${JSON.stringify(plugin(script))}, ${JSON.stringify(invocation)}); } catch {}`;
    return Bun.spawnSync([process.execPath, "-e", program]).stderr.toString();
  };
  expect(stderrOf("echo note >&2")).toBe("note\n");
  expect(stderrOf(`echo note >&2; echo '{"code":7,"msg":"refused"}'; exit 1`)).toBe("note\n");
  expect(stderrOf("echo note >&2; exit 1")).toBe("");
});

const noMessage = "netplugin failed with no error message: exit status 3";
const failures: [name: string, script: string, expected: { code?: number; message: string; details?: string }][] = [
  ["nothing at all", "exit 3", { message: noMessage }],
  ["a signal", "kill -9 $$", { message: "netplugin failed with no error message: signal: killed" }],
  ["stderr only", `printf 'a "q"\\nb' >&2; exit 3`, { message: 'netplugin failed: "a \\"q\\"\\nb": exit status 3' }],
  ["an error document", `echo '{"code":11,"msg":"try","details":"later"}'; exit 3`, {
    code: 11,
    message: "try",
    details: "later",
  }],
  ["keys in another case", `echo '{"Code":7,"MSG":"m","cniVersion":"1.0.0"}'; exit 1`, { code: 7, message: "m" }],
  ["an error document beside stderr", `echo '{"code":5,"msg":"m"}'; echo s >&2; exit 1`, { code: 5, message: "m" }],
  ["values that are null", `echo '{"code":null,"msg":"m","details":null}'; exit 1`, { message: "m" }],
  // The reference library has no message for these.
  ["{}", "echo {}; exit 3", { message: noMessage }],
  ["null", "echo null; echo why >&2; exit 3", { message: 'netplugin failed: "why\\n": exit status 3' }],
  ["a code without a message", `echo '{"code":50}'; exit 3`, { code: 50, message: noMessage }],
  ["a result", `echo '{"cniVersion":"1.0.0","ips":[]}'; exit 3`, { message: noMessage }],
];

for (const [name, script, expected] of failures) {
  test(`failure with ${name}`, () => expect(failure(plugin(script))).toEqual({ code: 0, details: "", ...expected }));
}

for (const stdout of ["no json", "{}{}", "[]", '{"code":-1}', '{"code":"x"}', '{"code":1.5}', '{"msg":5}']) {
  test(`failure with ${stdout}, which is no error document`, () => {
    const { code, message } = failure(plugin(`printf '%s' '${stdout}'; exit 1`));
    expect(code).toBe(0);
    const quoted = stdout.replaceAll('"', '\\"');
    expect(message).toStartWith(`netplugin failed but error parsing its diagnostic message "${quoted}": `);
  });
}

test("a file that cannot be executed is the kernel's error", () => {
  const path = plugin("exit 0");
  chmodSync(path, 0o644);
  expect(failure(path).message).toBe(
    `netplugin failed with no error message: fork/exec ${path}: permission denied`,
  );
  writeFileSync(path, "neither script nor program");
  chmodSync(path, 0o755);
  expect(failure(path).message).toBe(
    `netplugin failed with no error message: fork/exec ${path}: exec format error`,
  );
});

test("a file that is being written is retried until it is closed", () => {
  const path = plugin("echo done");
  const writer = openSync(path, "r+");
  // Another process holds the descriptor and closes it later, because this one is busy retrying.
  const closing = Bun.spawn(["sh", "-c", "sleep 1.5"], { stdio: [writer, "ignore", "ignore"] });
  closeSync(writer);
  expect(runForeignPlugin(path, invocation)).toBe("done\n");
  closing.kill();
}, 300_000);

test("a file that stays busy fails in the end", () => {
  const path = plugin("echo done");
  const writer = openSync(path, "r+");
  try {
    expect(failure(path).message).toBe(`netplugin failed with no error message: fork/exec ${path}: text file busy`);
  } finally {
    closeSync(writer);
  }
}, 300_000);
