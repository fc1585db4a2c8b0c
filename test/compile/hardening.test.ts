/**
 * The runtime inside the program must not obey its environment, its working directory or its arguments. Each case has
 * a canary: a file that exists afterwards if somebody else's code ran, or an answer that is not ours. An unguarded
 * build gets the same switches first. That shows that this version of Bun still has them, and that the canaries work.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flags } from "../../compile/build.ts";
import { PATCHBAY } from "../support/plugins.ts";

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
let directory: string;
let canary: string;
let script: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-hardening-"));
  chmodSync(directory, 0o755);
  canary = join(directory, "canary");
  script = join(directory, "canary.js");
  writeFileSync(script, `require("fs").writeFileSync(${JSON.stringify(canary)}, "sang");`);
  writeFileSync(join(directory, "preload.toml"), `preload = [${JSON.stringify(script)}]\n`);
  writeFileSync(join(directory, "overrides.txt"), "function f() {}");
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Attempt {
  name: string;
  env: () => Record<string, string>;
  args?: () => string[];
  /** Has no effect on an unguarded build either; here so that a new Bun that changes this is noticed. */
  dead?: boolean;
  /** What it does cannot be seen from outside; see the tests with strace. */
  silent?: boolean;
}

const attempts: Attempt[] = [
  { name: "BUN_BE_BUN", env: () => ({ BUN_BE_BUN: "1" }), args: () => ["-e", readFileSync(script, "utf8")] },
  { name: "BUN_OPTIONS=--preload", env: () => ({ BUN_OPTIONS: `--preload=${script}` }) },
  { name: "BUN_OPTIONS=--config", env: () => ({ BUN_OPTIONS: `--config=${join(directory, "preload.toml")}` }) },
  { name: "BUN_INSPECT", env: () => ({ BUN_INSPECT: "ws://127.0.0.1:0/x" }), silent: true },
  { name: "BUN_INSPECT_CONNECT_TO", env: () => ({ BUN_INSPECT_CONNECT_TO: "unix:/nonexistent" }), dead: true },
  { name: "BUN_INSPECT_PRELOAD", env: () => ({ BUN_INSPECT_PRELOAD: script }), dead: true },
  { name: "BUN_BYTECODE_ORDER_OUT", env: () => ({ BUN_BYTECODE_ORDER_OUT: canary }) },
  { name: "BUN_JSC_useJIT", env: () => ({ BUN_JSC_useJIT: "0" }) },
  { name: "BUN_JSC_ and no option", env: () => ({ BUN_JSC_nosuchoption: "1" }) },
  { name: "BUN_JSC_dumpOptions", env: () => ({ BUN_JSC_dumpOptions: "2" }) },
  { name: "JavaScriptCoreUseJIT", env: () => ({ JavaScriptCoreUseJIT: "0" }) },
  { name: "MIMALLOC_VERBOSE", env: () => ({ MIMALLOC_VERBOSE: "1" }) },
  { name: "mimalloc_verbose", env: () => ({ mimalloc_verbose: "1" }) },
  { name: "NODE_OPTIONS", env: () => ({ NODE_OPTIONS: `--require=${script}` }), dead: true },
  { name: "BUN_PRELOAD", env: () => ({ BUN_PRELOAD: script }), dead: true },
  { name: "BUN_CONFIG_FILE", env: () => ({ BUN_CONFIG_FILE: join(directory, "preload.toml") }), dead: true },
  { name: "NODE_PATH", env: () => ({ NODE_PATH: directory }), dead: true },
  { name: "NODE_CHANNEL_FD", env: () => ({ NODE_CHANNEL_FD: "2" }), silent: true },
];

interface Seen {
  code: number;
  stdout: string;
  stderr: string;
  sang: boolean;
}

function run(program: string, env: Record<string, string>, args: string[] = [], cwd = directory): Seen {
  rmSync(canary, { force: true });
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...args], {
    env: { PATH, ...env },
    cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 120_000,
  });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString(), sang: existsSync(canary) };
}

describe("an unguarded build", () => {
  let unguarded: string;
  beforeAll(() => {
    // Binds the C library as ours does, and waits for its stdin to end.
    const source = join(directory, "unguarded.ts");
    const libc = join(import.meta.dir, "../../src/ffi/libc.ts");
    writeFileSync(
      source,
      `import { libc } from ${JSON.stringify(libc)};\nlibc.read(0, new Uint8Array(1), 1);\n` +
        `libc.write(1, new TextEncoder().encode("ok\\n"), 3);\n`,
    );
    unguarded = join(directory, "unguarded");
    const built = Bun.spawnSync([process.execPath, "build", ...flags, `--outfile=${unguarded}`, source], {
      env: { PATH, HOME: directory },
      stdout: "pipe",
      stderr: "pipe",
    });
    expect(built.stderr.toString()).toBe("");
  });

  const undisturbed = { code: 0, stdout: "ok\n", stderr: "", sang: false };

  test("runs undisturbed without switches", () => {
    expect(run(unguarded, {})).toEqual(undisturbed);
  });

  for (const { name, env, args, dead } of attempts.filter(({ silent }) => !silent)) {
    test(`without our first code it ${dead ? "ignores" : "obeys"} ${name}`, () => {
      const seen = run(unguarded, env(), args?.());
      if (dead) expect(seen).toEqual(undisturbed);
      else expect(seen).not.toEqual(undisturbed);
    });
  }

  test("obeys BUN_INSPECT", () => {
    const listens = untilLogged("listen(");
    expect(networkCalls(unguarded, {}, listens).join("\n")).toContain("listen(");
  });
});

const log = () => join(directory, "strace.log");

/** Gives up after a minute, so that nothing waits for a program that died. */
function untilLogged(text: string): string {
  return `for _ in $(seq 3000); do grep -qsF "${text}" ${log()} && break; sleep 0.02; done`;
}

/** The network calls that the program makes under BUN_INSPECT while it waits for its stdin, which ends after `until`. */
function networkCalls(program: string, env: Record<string, string>, until: string): string[] {
  rmSync(log(), { force: true });
  const traced = `strace -f -o ${log()} -e trace=execve,socket,bind,listen,connect,read ${program}`;
  const trace = `(${until}) | exec ${traced}`;
  run("sh", { BUN_INSPECT: "ws://127.0.0.1:0/x", ...env }, ["-c", trace]);
  const lines = readFileSync(log(), "utf8").split("\n");
  expect(lines.some((line) => line.includes("read(0,"))).toBe(true);
  return lines.filter((line) => /\b(socket|bind|listen|connect)\(/.test(line));
}

describe("dist/patchbay", () => {
  let plugin: string;
  let expected: Seen;
  // The first code answers what is less wrong.
  const call = { CNI_COMMAND: "STATUS" };
  beforeAll(() => {
    mkdirSync(join(directory, "bin"));
    plugin = join(directory, "bin/bridge");
    symlinkSync(PATCHBAY, plugin);
    expected = run(plugin, call);
    expect(expected).toMatchObject({ code: 1, stderr: "", sang: false });
    expect(JSON.parse(expected.stdout).msg).toBe("required env variables [CNI_PATH] missing");
  });

  for (const { name, env, args } of attempts) {
    test(`is deaf to ${name}`, () => {
      expect(run(plugin, { ...call, ...env() }, args?.())).toEqual(expected);
    });
  }

  test("opens no socket for a debugger", () => {
    const env = { CNI_COMMAND: "STATUS", CNI_PATH: "/nonexistent" };
    const reads = `${untilLogged("read(0,")}; sleep 0.3`;
    expect(networkCalls(plugin, env, reads)).toEqual([]);
  });

  test("reads nothing of a hostile working and home directory", () => {
    const hostile = join(directory, "hostile");
    mkdirSync(join(hostile, "node_modules/zod"), { recursive: true });
    const files = {
      ".env": `CNI_COMMAND=ADD\nBUN_OPTIONS=--preload=${script}\n`,
      ".env.production": "CNI_COMMAND=ADD\n",
      "bunfig.toml": `preload = [${JSON.stringify(script)}]\n`,
      ".bunfig.toml": `preload = [${JSON.stringify(script)}]\n`,
      "tsconfig.json": `{"compilerOptions": {"paths": {"*": [${JSON.stringify(script)}]}}}`,
      "package.json": `{"name": "x", "imports": {"#x": ${JSON.stringify(script)}}}`,
      "node_modules/zod/package.json": `{"name": "zod", "main": "index.js"}`,
      "node_modules/zod/index.js": readFileSync(script, "utf8"),
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(hostile, name), text);
    expect(run(plugin, { ...call, HOME: hostile, XDG_CONFIG_HOME: hostile }, [], hostile)).toEqual(expected);

    const log = join(directory, "files.log");
    run("strace", call, ["-f", "-o", log, "-e", "trace=%file", plugin], hostile);
    expect(readFileSync(log, "utf8")).toMatch(/execve\(.*\n(.*\n)*.*exited with 1/);
    const touched = readFileSync(log, "utf8").split("\n").filter((line) => line.includes(hostile));
    expect(touched.filter((line) => !line.includes("getcwd("))).toEqual([]);
  });

  test("reads nothing that lies beside it", () => {
    const beside = join(directory, "beside");
    mkdirSync(beside);
    const program = join(beside, "bridge");
    try {
      linkSync(PATCHBAY, program);
    } catch {
      copyFileSync(PATCHBAY, program);
    }
    writeFileSync(join(beside, ".env"), "CNI_COMMAND=ADD\n");
    writeFileSync(join(beside, "bunfig.toml"), `preload = [${JSON.stringify(script)}]\n`);
    expect(run(program, call)).toEqual(expected);
  });

  for (const name of ["bun", "bunx", "node", "bun-debug"]) {
    test(`is no JavaScript interpreter when called ${name}`, () => {
      const link = join(directory, "bin", name);
      symlinkSync(PATCHBAY, link);
      for (const args of [["-e", readFileSync(script, "utf8")], [script], ["run", script]]) {
        const { sang, code } = run(link, {}, args);
        expect({ sang, failed: code !== 0 }).toEqual({ sang: false, failed: true });
      }
    });
  }

  for (const args of [["--preload=SCRIPT"], ["--config=CONFIG"], ["--inspect"], ["-r", "SCRIPT"], ["-e", "CODE"]]) {
    test(`takes ${args.join(" ")} for an argument of its own`, () => {
      const real = args.map((text) =>
        text.replace("SCRIPT", script).replace("CONFIG", join(directory, "preload.toml"))
          .replace("CODE", readFileSync(script, "utf8"))
      );
      expect(run(PATCHBAY, {}, real).sang).toBe(false);
      expect(run(plugin, call, real)).toEqual(expected);
    });
  }

  describe("with more rights than its caller", () => {
    let copy: string;
    const refusal = '{"cniVersion":"1.1.0","code":4,' +
      '"msg":"patchbay does not run setuid, setgid or with file capabilities"}\n';
    const asNobody = (program: string) =>
      run("setpriv", call, ["--reuid=65534", "--regid=65534", "--clear-groups", program]);
    beforeAll(() => {
      copy = join(directory, "loopback");
      copyFileSync(PATCHBAY, copy);
      chmodSync(copy, 0o755);
    });

    test("runs for a user without any", () => {
      expect(asNobody(copy).stdout).toContain("[CNI_PATH] missing");
    });
    test("refuses as setuid program", () => {
      chmodSync(copy, 0o4755);
      expect(asNobody(copy)).toEqual({ code: 1, stdout: refusal, stderr: "", sang: false });
      // Root gains nothing by it.
      expect(run(copy, call).stdout).toContain("[CNI_PATH] missing");
      chmodSync(copy, 0o755);
    });
    test("refuses as setgid program", () => {
      chmodSync(copy, 0o2755);
      expect(asNobody(copy)).toEqual({ code: 1, stdout: refusal, stderr: "", sang: false });
      chmodSync(copy, 0o755);
    });
    test("refuses with file capabilities", () => {
      expect(Bun.spawnSync(["setcap", "cap_net_admin+ep", copy]).exitCode).toBe(0);
      expect(asNobody(copy)).toEqual({ code: 1, stdout: refusal, stderr: "", sang: false });
    });
  });
});
