/** The first code answers what needs no runtime in the words of the runtime, and leaves everything else to it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { netavarkDriverNames, pluginNames } from "../../src/plugins/table.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { withoutFirstCode } from "../support/without-first-code.ts";

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-answer-"));
  writeFileSync(join(directory, "runtime"), withoutFirstCode(PATCHBAY), { mode: 0o755 });
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

function linkTo(program: string, path: string): string {
  const link = join(directory, path);
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(program, link);
  return link;
}

const ownLink = (name: string) => linkTo(PATCHBAY, join("ours", name));

/** What a call by this name says. Variables are `NAME=VALUE`, each there as often as given. */
function said(program: string, name: string, variables: readonly string[], words: readonly string[]): Said {
  const link = linkTo(program, join(program === PATCHBAY ? "ours" : "its", name));
  const names = variables.map((one) => one.split("=")[0]);
  const isObject = new Set(names).size === names.length && variables.every((one) => one.includes("="));
  const command = isObject ? ["env", "-i", ...variables, link, ...words] : executing(link, variables, words);
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** With an environment as no shell makes it. */
function executing(link: string, variables: readonly string[], words: readonly string[]): string[] {
  const script = `import ctypes, json, os, sys
texts = lambda all: (ctypes.c_char_p * (len(all) + 1))(*map(os.fsencode, all), None)
link, variables, words = json.loads(sys.argv[1])
ctypes.CDLL(None).execve(os.fsencode(link), texts([link, *words]), texts(variables))`;
  return ["python3", "-c", script, JSON.stringify([link, variables, words])];
}

function expectTheSame(name: string, variables: readonly string[], words: readonly string[] = []) {
  const runtimes = said(join(directory, "runtime"), name, variables, words);
  expect([name, variables, said(PATCHBAY, name, variables, words)]).toEqual([name, variables, runtimes]);
  return runtimes;
}

const ours = [...pluginNames, "x-bridge", "x-dhcp", "ovs-cni", "a-b-host-device"];
const others = [
  "patchbay",
  "cnitool",
  "netavark",
  ...netavarkDriverNames,
  "xbridge",
  "bridge-",
  "-",
  "x.y_9",
  'a"b',
  "é",
];

test("VERSION, for each plugin by its name and after a prefix", () => {
  for (const name of ours) expect(expectTheSame(name, ["A=1", "CNI_COMMAND=VERSION"]).code).toBe(0);
});

test("no command, for each plugin", () => {
  for (const name of ours) {
    expect(expectTheSame(name, []).stderr).toStartWith(`CNI ${name.replace(/^x-|^a-b-|-cni$/, "")} plugin v1.`);
  }
});

test("other names, with a command", () => {
  for (const name of others) {
    for (const command of ["VERSION", "ADD"]) {
      const { code, stdout } = expectTheSame(name, [`CNI_COMMAND=${command}`]);
      expect([code, JSON.parse(stdout).msg]).toEqual([1, `invalid plugin name: ${name}`]);
    }
  }
});

test("what is unusual about the call", () => {
  const version = "CNI_COMMAND=VERSION";
  for (
    const variables of [
      [version, version],
      [version, "CNI_COMMAND=ADD"],
      ["CNI_COMMAND", version],
      ["CNI_COMMAND=", "CNI_ARGS=é"],
      ["CNI_COMMAND=VERSIONS"],
      ["CNI_COMMAND=version"],
      ["CNI_ARGS=1", version, "CNI_ARGSX=1", "XCNI_ARGS=1"],
      ["CNI_ARGS=1", "CNI_ARGSX=1", "CNI_ARGS=2", version],
      ["CNI_ARGS", version],
      [version, "CNI_CONTAINERID=%%", "CNI_NETNS=/nowhere"],
    ]
  ) expectTheSame("bridge", variables);
  expectTheSame("bridge", [version], ["word"]);
  expectTheSame("dhcp", [version], ["nonsense"]);
});

test("an answer that nobody takes is an error", () => {
  const link = ownLink("bridge"),
    gone = "import os, sys; read, write = os.pipe(); os.close(read); os.dup2(write, 1);";
  const execute = `${gone} os.execve(sys.argv[1], sys.argv[1:], {"CNI_COMMAND": "VERSION"})`;
  for (
    const [command, why] of [
      [["sh", "-c", `CNI_COMMAND=VERSION ${link} >/dev/full`], "no space left on device"],
      [
        ["python3", "-c", `import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); ${execute}`, link],
        "broken pipe",
      ],
    ] as [string[], string][]
  ) {
    const { exitCode, stderr } = Bun.spawnSync(command);
    expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining(why)]);
  }
});

test("it is the first code that answers", () => {
  const link = ownLink("bridge");
  const calls = Bun.spawnSync(["strace", "-f", "-s200", link], { env: { CNI_COMMAND: "VERSION" } }).stderr.toString();
  expect(calls).toContain("supportedVersions");
  expect(calls).not.toContain("openat");
});
