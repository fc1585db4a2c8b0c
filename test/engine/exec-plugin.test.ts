/** The program as a plugin: stdout, stderr and exit status for every kind of call. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { version } from "../../package.json";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { patchbayPlugins } from "../support/plugins.ts";

let machine: Machine;
let container: Container;
beforeAll(async () => {
  machine = await openMachine();
  container = await machine.container("c1");
});
afterAll(() => machine[Symbol.asyncDispose]());

const config = { cniVersion: "1.0.0", name: "n", type: "loopback" };

const environment = (changes: Record<string, string> = {}) => ({
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c1",
  CNI_NETNS: container.netnsPath,
  CNI_IFNAME: "lo",
  CNI_PATH: patchbayPlugins(),
  ...changes,
});

const call = (env: Record<string, string>, stdin = JSON.stringify(config)) =>
  machine.run([`${patchbayPlugins()}/loopback`], { env, stdin });

/** Runs the plugin with its stdout redirected by the shell. */
const redirected = (redirection: string, env: Record<string, string>, stdin = JSON.stringify(config)) =>
  machine.run(["sh", "-c", `${patchbayPlugins()}/loopback ${redirection}`], { env, stdin });

const isUp = async () => /\bUP\b/.test(await machine.sh("ip -o link show lo", { in: container }));

test("without CNI_COMMAND it prints its name on stderr and succeeds", async () => {
  const versions = "0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0";
  const stderr = `CNI loopback plugin v1.10.0+patchbay.${version}\nCNI protocol versions supported: ${versions}\n`;
  for (const env of [{}, { CNI_COMMAND: "" }] as Record<string, string>[]) {
    expect(await call(env, "")).toEqual({ code: 0, stdout: "", stderr });
  }
});

test("VERSION prints one line, without reading stdin", async () => {
  const stdout =
    '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}\n';
  expect(await call({ CNI_COMMAND: "VERSION" }, "no json")).toEqual({ code: 0, stdout, stderr: "" });
});

test("ADD prints one document without a final newline; DEL and CHECK print nothing", async () => {
  const added = await call(environment());
  expect(added).toMatchObject({ code: 0, stderr: "" });
  expect(added.stdout).toBe(JSON.stringify(JSON.parse(added.stdout), null, 4));
  expect(JSON.parse(added.stdout)).toMatchObject({ cniVersion: "1.0.0", interfaces: [{ name: "lo" }] });
  const prevResult = JSON.parse(added.stdout);
  const silent = { code: 0, stdout: "", stderr: "" };
  expect(await call(environment({ CNI_COMMAND: "CHECK" }), JSON.stringify({ ...config, prevResult }))).toEqual(
    silent,
  );
  expect(await call(environment({ CNI_COMMAND: "DEL" }))).toEqual(silent);
});

test("an error is one document on stdout, and exit status 1", async () => {
  const { code, stdout, stderr } = await call(environment({ CNI_CONTAINERID: "%%" }));
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({ code: 4, msg: "invalid characters in containerID", details: "%%" });
});

test("an error has the configuration's version once that is known", async () => {
  const { stdout } = await call(environment({ CNI_NETNS: "/nowhere" }));
  expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "1.0.0", code: expect.any(Number) });
});

test("an unknown command still needs a configuration", async () => {
  for (const [stdin, code] of [['{"name":"x"}', 4], ["{}", 7], ["", 6]] as const) {
    expect(JSON.parse((await call({ CNI_COMMAND: "NOPE" }, stdin)).stdout)).toMatchObject({ code });
  }
});

/** Runs the plugin with a pipe for stdout whose reader is gone. */
const unread = (env: Record<string, string>) => {
  const script = `import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.call(["${patchbayPlugins()}/loopback"], stdout=w))`;
  return machine.run(["python3", "-c", script], { env, stdin: JSON.stringify(config) });
};

const lost: [name: string, add: () => ReturnType<typeof redirected>, reason: string][] = [
  ["full", () => redirected(">/dev/full", environment()), "no space left on device"],
  ["unread", () => unread(environment()), "broken pipe"],
];

for (const [name, add, reason] of lost) {
  test(`an ADD whose stdout is ${name} fails, and is undone`, async () => {
    expect(await isUp()).toBe(false);
    expect(await add())
      .toEqual({ code: 1, stdout: "", stderr: `patchbay: cannot answer: write stdout: ${reason}\n` });
    expect(await isUp()).toBe(false);
    expect(await machine.sh("find /run/patchbay -type f ! -name 'serve~*' 2>/dev/null || true")).toBe("");
  });
}

test("an error that cannot be written to stdout is reported on stderr", async () => {
  const { code, stderr } = await redirected(">/dev/full", environment({ CNI_CONTAINERID: "%%" }));
  expect(code).toBe(1);
  expect(stderr).toContain("invalid characters in containerID; %%");
  expect(stderr).toContain("no space left on device");
});

test("VERSION that cannot be written fails", async () => {
  expect((await redirected(">/dev/full", { CNI_COMMAND: "VERSION" })).code).toBe(1);
});

test("a full pipe that does not block loses nothing", async () => {
  const long = JSON.stringify({ ...config, name: "x".repeat(70_000) + "%" });
  const script = `import os, subprocess, sys, time
r, w = os.pipe2(0)
os.set_blocking(w, False)
child = subprocess.Popen(["${patchbayPlugins()}/loopback"], stdin=sys.stdin, stdout=w)
os.close(w)
time.sleep(0.3)
out = b""
while chunk := os.read(r, 4096): out += chunk
sys.stdout.write(str(len(out)) + " " + str(child.wait()))`;
  const { stdout } = await machine.run(["python3", "-c", script], { env: environment(), stdin: long });
  const [length, code] = stdout.split(" ").map(Number);
  expect(length).toBeGreaterThan(70_000);
  expect(code).toBe(1);
});

test("a variable that is set twice is rejected", async () => {
  const script = `import os, subprocess, sys
env = b"CNI_COMMAND=VERSION"
import ctypes
libc = ctypes.CDLL(None)
path = b"${patchbayPlugins()}/loopback"
argv = (ctypes.c_char_p * 2)(path, None)
envp = (ctypes.c_char_p * 3)(env, b"CNI_COMMAND=ADD", None)
libc.execve(path, argv, envp)`;
  const { code, stdout } = await machine.run(["python3", "-c", script]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ code: 4, msg: "CNI_COMMAND is set twice" });
});

test("main.ts loads neither plugin nor runtime before it knows its name", () => {
  const source = readFileSync(new URL("../../src/main.ts", import.meta.url), "utf8");
  const imports = [...source.matchAll(/^import (?!type ).* from "(.*)";$/gm)].map(([, path]) => path);
  expect(imports).toEqual(["./ffi/libc.ts", "./ffi/umask.ts", "./plugins/table.ts", "./process/resident-by-call.ts"]);
});
