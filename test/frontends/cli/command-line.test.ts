/**
 * The command line: help, typing errors, exit statuses, completion, and cnitool's forms under that name.
 *
 * Longer than 300 lines: each command and option has a test, all on the same script plugins.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { version } from "../../../package.json";
import { PATCHBAY } from "../../support/plugins.ts";
import { type ScriptPlugins, scriptPlugins } from "../../support/script-plugins.ts";
import { runToEnd } from "../../support/run-to-end.ts";

let at: ScriptPlugins;
let configs: string;
beforeEach(() => {
  at = scriptPlugins();
  configs = `${at.directory}/configs`;
  mkdirSync(configs);
  writeFileSync(`${configs}/n.conflist`, at.network(["one"], { name: "n" }).source);
  symlinkSync(PATCHBAY, `${at.directory}/cnitool`);
});
afterEach(() => at[Symbol.dispose]());

const run = (args: string[], env: Record<string, string> = {}, program = PATCHBAY, cwd = "/") =>
  runToEnd([program, ...args], { env, cwd });
const patchbay = run;
const cnitool = (args: string[], env = {}) => run(args, env, `${at.directory}/cnitool`);
/** Options that keep the tests away from the machine's directories. */
const here =
  () => ["--config-dir", configs, "--plugin-path", at.runtime.pluginPath, "--cache-dir", at.runtime.cacheDirectory];

describe("without a network", () => {
  test("no arguments, --help and help print the help", () => {
    const { code, stdout, stderr } = patchbay([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Usage: patchbay COMMAND [ARGUMENTS]");
    for (const args of [["--help"], ["-h"], ["help"]]) expect(patchbay(args)).toEqual({ code, stdout, stderr });
  });

  test("every command has help, in two forms", () => {
    const commands = [...patchbay([]).stdout.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name]) => name!);
    expect(commands).toContain("install");
    for (const name of commands) {
      const help = patchbay([name, "--help"]);
      expect(help).toMatchObject({ code: 0, stderr: "" });
      expect(help.stdout).toStartWith(`Usage: patchbay ${name}`);
      expect(patchbay(["help", name])).toEqual(help);
    }
  });

  test("the help explains the operands that a command has, and no others", () => {
    const commands = [...patchbay([]).stdout.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name]) => name!);
    for (const name of commands) {
      const [usage = "", ...lines] = patchbay([name, "--help"]).stdout.split("\n");
      const explained = lines.flatMap((line) => /^([A-Z]+) (?:is|has) /.exec(line)?.[1] ?? []);
      const places = [usage, ...lines.flatMap((line) => /^ +(?:-\w,)? *--\S+ \S+/.exec(line)?.[0] ?? [])];
      const isTaken = (word: string) => places.some((line) => line.includes(word));
      expect([name, explained.filter((word) => !isTaken(word))]).toEqual([name, []]);
    }
  });

  const digits: [name: string, digits: number][] = [["check", 4], ["inspect", 4], ["repair", 4], ["del", 12], [
    "ipam",
    12,
  ]];
  test.each(digits)("the help of %s says that %p digits of an ID suffice", (name, count) => {
    expect(patchbay([name, "--help"]).stdout).toContain(`At least\nthe first ${count} digits name it, too`);
  });

  test.each(["add", "hook"])("the help of %s has the exit statuses of signals", (name) => {
    expect(patchbay([name, "--help"]).stdout).toContain("130 or 143 when SIGINT or SIGTERM ends it");
  });

  const empty = [
    ["add", "n", ""],
    ["add", "", "x"],
    ["check", "n", ""],
    ["del", "n", ""],
    ["gc", ""],
    ["lint", ""],
    [
      "status",
      "",
    ],
    ["inspect", ""],
    ["network", "remove", ""],
  ];
  test.each(empty)("an empty operand is refused: %s %s %s", (...args) => {
    const { code, stderr } = patchbay(args.filter((arg) => arg !== undefined));
    expect([code, stderr.split("\n")[0]]).toEqual([2, `patchbay ${args[0]}: an operand is empty`]);
  });

  const emptyOptions = [
    ["add", "n", "x", "--ifname", ""],
    ["del", "n", "x", "-i", ""],
    ["check", "n", "x", "--container-id="],
    ["status", "n", "--config-dir="],
    ["inspect", "--cache-dir="],
    ["ipam", "list", "--data-dir="],
    ["ipam", "release", "n", "--container="],
  ];
  test.each(emptyOptions)("an empty value is refused: %s %s %s %s", (...args) => {
    const { code, stderr } = patchbay(args.filter((arg) => arg !== undefined));
    expect([code, stderr.split("\n")[0]]).toEqual([
      2,
      expect.stringMatching(new RegExp(`^patchbay ${args[0]}: option --[a-z-]+ is empty: [A-Z]+ expected$`)),
    ]);
  });

  test.each(["0", "65", "two", "1.5", ""])("serve takes a number of workers, and not %s", (text) => {
    const { code, stderr } = patchbay(["serve", `--workers=${text}`]);
    expect({ code, says: stderr.split("\n")[0] }).toEqual({
      code: 2,
      says: `patchbay serve: --workers takes a number from 1 to 64, not ${text}`,
    });
  });

  test("the word by which a resident starts its workers is none for people", () => {
    const { code, stderr } = patchbay(["serve", "--worker"]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("patchbay serve: unknown option --worker; did you mean --workers?\n"),
    ]);
  });

  test("the version is package.json's", () => {
    expect(patchbay(["--version"]).stdout).toStartWith(`patchbay ${version}\nCNI 0.1.0, 0.2.0`);
    for (const word of ["version", "-v"]) expect(patchbay([word])).toEqual(patchbay(["--version"]));
  });

  test("a misspelt command gets a hint, and exit status 2", () => {
    expect(patchbay(["ad"])).toEqual({
      code: 2,
      stdout: "",
      stderr: `patchbay: unknown command "ad"; did you mean "add"?\nSee 'patchbay help'.\n`,
    });
    // What other programs call it, too.
    expect(patchbay(["lis"]).stderr).toStartWith('patchbay: unknown command "lis"; did you mean "ls"?\n');
    expect(patchbay(["remov"]).stderr).toStartWith('patchbay: unknown command "remov"; did you mean "del"?\n');
    expect(patchbay(["frobnicate"]).stderr).toStartWith('patchbay: unknown command "frobnicate"\n');
    expect(patchbay(["constructor"]).code).toBe(2);
    expect(patchbay(["help", "ad"]).code).toBe(2);
  });

  test("wrong arguments are rejected with the usage", () => {
    expect(patchbay(["add", "n"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "patchbay add: NETWORK NETNS expected\nUsage: patchbay add [OPTIONS] NETWORK NETNS\nSee 'patchbay help add'.\n",
    });
    expect(patchbay(["add", "n", "x", "y"]).stderr).toStartWith('patchbay add: "y" is one too many\n');
    expect(patchbay(["gc", "n", "--valid", "x"]).stderr).toStartWith(
      "patchbay gc: --valid x is not CONTAINER/IFNAME\n",
    );
    expect(patchbay(["gc", "n", "--nope"]).stderr).toStartWith("patchbay gc: unknown option --nope\n");
  });

  test("--help works anywhere, and a misspelt help gets a hint", () => {
    expect(patchbay(["hlep"]).stderr).toStartWith('patchbay: unknown command "hlep"; did you mean "help"?\n');
    const help = patchbay(["help", "add"]);
    for (const args of [["add", "n", "-h"], ["add", "--help", "x"], ["--help", "add"]].slice(0, 2)) {
      expect(patchbay(args)).toEqual(help);
    }
  });

  test("under any name that is not a plugin's, it is the runtime", () => {
    symlinkSync(PATCHBAY, `${at.directory}/something`);
    expect(run(["version"], {}, `${at.directory}/something`)).toEqual(patchbay(["version"]));
  });
});

describe("on networks", () => {
  const result = { cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24" }] };
  const printed = JSON.stringify(result, null, 4);

  beforeEach(() => at.plugin("one", { ADD: { stdout: result } }));

  test('add, check, del and status: the result without a newline, "ready" and nothing else', () => {
    expect(patchbay(["add", "n", "/run/netns/x", ...here()])).toEqual({ code: 0, stdout: printed, stderr: "" });
    for (const words of [["check", "n", "/run/netns/x"], ["status", "n"], ["del", "n", "/run/netns/x"]]) {
      const stdout = words[0] === "status" ? "ready\n" : "";
      expect(patchbay([...words, ...here()])).toEqual({ code: 0, stdout, stderr: "" });
    }
    expect(at.calls()).toEqual(["ADD one", "CHECK one", "STATUS one", "DEL one"]);
  });

  test("a failing add prints each error once", () => {
    const add = () => patchbay(["add", "n", "/run/netns/x", ...here()]);
    const refusal = { stdout: { code: 7, msg: "no", details: "never" }, exit: 1 };
    const begin = 'patchbay add: plugin type="one" failed (add): ';
    at.plugin("one", { ADD: refusal, DEL: refusal });
    expect(add()).toEqual({
      code: 1,
      stdout: "",
      stderr: `${begin}no; never; taking it back (DEL) failed for the same reason\n`,
    });
    at.plugin("one", { ADD: refusal, DEL: { stdout: { code: 11, msg: "not now" }, exit: 1 } });
    expect(add().stderr).toBe(
      `${begin}no; never; taking it back failed: plugin type="one" failed (delete): not now\n`,
    );
    at.plugin("two", { ADD: { stderr: "boom", exit: 1 } });
    writeFileSync(`${configs}/n.conflist`, at.network(["two"], { name: "n" }).source);
    expect(add().stderr).toBe(
      'patchbay add: plugin type="two" failed (add): netplugin failed: "boom": exit status 1\n',
    );
    at.plugin("two", { ADD: { stdout: { code: 7, msg: "no" }, stderr: "a note\n", exit: 1 } });
    expect(add().stderr).toBe('a note\npatchbay add: plugin type="two" failed (add): no\n');
  });

  test("what our plugin rejects on add it does not repeat on the del that follows", () => {
    const network = at.network([{ type: "bandwidth", ingressRate: -1 }], { name: "n" });
    writeFileSync(`${configs}/n.conflist`, network.source);
    const options = ["--config-dir", configs, "--plugin-path", "", "--cache-dir", at.runtime.cacheDirectory];
    const { code, stderr } = run(["add", "n", "/run/netns/nowhere", ...options], {
      PATCHBAY_STATE_DIR: `${at.directory}/ledgers`,
    });
    expect({ code, lines: stderr.split("\n").length }).toEqual({ code: 1, lines: 2 });
    expect(stderr).toStartWith(
      'patchbay add: plugin type="bandwidth" failed (add): failed to load netconf: "ingressRate"',
    );
  });

  test("the environment of cnitool is understood, and options win over it", () => {
    const env = {
      NETCONFPATH: configs,
      CNI_PATH: at.runtime.pluginPath,
      CNI_ARGS: "A=b;C=d",
      CAP_ARGS: '{"ips":["10.0.0.9/24"]}',
      CNI_IFNAME: "net1",
      CNI_CONTAINERID: "not asked",
    };
    writeFileSync(
      `${configs}/n.conflist`,
      at.network([{ type: "one", capabilities: { ips: true } }], { name: "n" }).source,
    );
    const cache = ["--cache-dir", at.runtime.cacheDirectory];
    patchbay(["add", "n", "/var/run/netns/cnitest", ...cache], env);
    expect(at.environment("ADD one").filter((entry) => entry.startsWith("CNI_")).sort()).toEqual([
      "CNI_ARGS=A=b;C=d",
      "CNI_COMMAND=ADD",
      "CNI_CONTAINERID=cnitool-20c433bb2b1d6ede56d6",
      "CNI_IFNAME=net1",
      "CNI_NETNS=/var/run/netns/cnitest",
      `CNI_PATH=${at.runtime.pluginPath}`,
    ]);
    expect(at.stdin("ADD one").runtimeConfig).toEqual({ ips: ["10.0.0.9/24"] });
    patchbay(["add", "-i", "net2", "--container-id", "mine", "n", "/x", ...cache], env);
    expect(at.environment("ADD one")).toEqual(expect.arrayContaining(["CNI_IFNAME=net2", "CNI_CONTAINERID=mine"]));
  });

  test("options may stand before the command", () => {
    const before = (...args: string[]) => {
      for (const program of [patchbay, cnitool]) {
        expect(program([...args, "n", "/x", ...here()])).toMatchObject({ code: 0 });
      }
      return at.environment("ADD one");
    };
    expect(before("-i", "foo", "add")).toContain("CNI_IFNAME=foo");
    expect(before("-ifoo2", "add")).toContain("CNI_IFNAME=foo2");
    expect(before("--ifname=foo3", "--cache-dir", at.runtime.cacheDirectory, "add")).toContain("CNI_IFNAME=foo3");
    expect(patchbay(["--nope", "add", "n", "/x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("patchbay add: unknown option --nope\n"),
    });
    expect(patchbay(["-i"])).toMatchObject({ code: 2 });
  });

  test("CAP_ARGS=null is no arguments", () => {
    expect(patchbay(["add", "n", "/x", ...here()], { CAP_ARGS: "null" })).toMatchObject({ code: 0, stderr: "" });
    expect(at.stdin("ADD one").runtimeConfig).toBeUndefined();
  });

  test("the container ID is a hash of the absolute path's text", () => {
    const id = (netns: string, cwd = "/") => {
      run(["add", "n", netns, ...here()], {}, PATCHBAY, cwd);
      return at.environment("ADD one").filter((entry) => /^CNI_(CONTAINERID|NETNS)=/.test(entry)).sort();
    };
    const testing = ["CNI_CONTAINERID=cnitool-77383ca0a0715733ca6f", "CNI_NETNS=/var/run/netns/testing"];
    expect(id("/var/run/netns/testing")).toEqual(testing);
    expect(id("/var/./run//netns/x/../testing/")).toEqual(testing);
    expect(id("/../../var/run/netns/testing")).toEqual(testing);
    expect(id("../cache/./x", "/var/lib")[1]).toBe("CNI_NETNS=/var/cache/x");
  });

  test("the interface is eth0 unless said otherwise", () => {
    patchbay(["add", "n", "/x", ...here()], { CNI_IFNAME: "" });
    expect(at.environment("ADD one")).toContain("CNI_IFNAME=eth0");
  });

  const refused: [env: Record<string, string>, message: string][] = [
    [{ CNI_ARGS: "A" }, 'invalid CNI_ARGS pair "A"'],
    [{ CNI_ARGS: "A=" }, 'invalid CNI_ARGS pair "A="'],
    [{ CNI_ARGS: "A=b;" }, 'invalid CNI_ARGS pair ""'],
    [
      { CNI_ARGS: "A=b=c" },
      'invalid CNI_ARGS pair "A=b=c"; CNI_ARGS is "A=b=c"\n  it has the form KEY=VALUE;KEY=VALUE, ',
    ],
    [{ CAP_ARGS: "[]" }, "CAP_ARGS: []: it must be a JSON object\n  it has the form "],
    [{ CAP_ARGS: "{" }, "CAP_ARGS: {: "],
    [{ CAP_ARGS: "8".repeat(101) }, `CAP_ARGS: ${"8".repeat(100)}…: it must be a JSON object`],
  ];

  for (const [env, message] of refused) {
    test(`${JSON.stringify(env)} is refused before anything is run`, () => {
      const { code, stderr } = patchbay(["add", "n", "/x", ...here()], env);
      expect(code).toBe(1);
      expect(stderr).toStartWith(`patchbay add: ${message}`);
      expect(at.calls()).toEqual([]);
    });
  }

  test("a failure is printed on stderr in full, with exit status 1", () => {
    at.plugin("one", { any: { stdout: { code: 11, msg: "try", details: "later" }, exit: 3 } });
    expect(patchbay(["del", "n", "/x", ...here()])).toEqual({
      code: 1,
      stdout: "",
      stderr: 'patchbay del: "/x" is not attached to network "n"; no ledger and no cached result names it\n' +
        'patchbay del: plugin type="one" failed (delete): try; later\n',
    });
    expect(patchbay(["add", "unknown", "/x", ...here()]).stderr)
      .toBe(`patchbay add: no net configuration with name "unknown" in ${configs}; there is n\n`);
  });

  test("an unknown network gets a hint and the list of networks", () => {
    writeFileSync(`${configs}/first.conflist`, at.network(["one"], { name: "first" }).source);
    expect(patchbay(["add", "frist", "/x", ...here()]).stderr).toBe(
      `patchbay add: no net configuration with name "frist" in ${configs}; did you mean "first"? there are first, n\n`,
    );
  });

  test("the error of a broken file has the position, and the network that the file hides", () => {
    const path = `${configs}/a.conflist`;
    writeFileSync(path, '{\n  "cniVersion": "1.1.0",\n  "name": "a"\n  "plugins": []\n}\n');
    expect(patchbay(["add", "n", "/x", ...here()])).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay add: error parsing configuration list: "," or "}" expected, found "plugins"; ${path}:4:3; ` +
        `it hides network "n" in ${configs}/n.conflist\n`,
    });
    writeFileSync(path, '{"cniVersion":"1.1.0","name":"a","plugins":[{}]}');
    expect(patchbay(["status", "n", ...here()]).stderr).toBe(
      "patchbay status: error parsing configuration list: failed to parse plugin config 0: " +
        `error parsing configuration: missing 'type'; ${path}; it hides network "n" in ${configs}/n.conflist\n`,
    );
    expect(at.calls()).toEqual([]);
  });

  test("gc keeps what is valid, and prints what it deletes", () => {
    for (const id of ["a", "b"]) patchbay(["add", "n", "/x", "--container-id", id, ...here()]);
    const { code, stderr } = patchbay(["gc", "n", "--valid", "a/eth0", ...here()]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "deleting eth0 of container b from network n\n" });
    expect(at.calls().slice(2)).toEqual(["DEL one", "GC one"]);
    expect(at.stdin("GC one")["cni.dev/valid-attachments"]).toEqual([{ containerID: "a", ifname: "eth0" }]);
  });

  test("an attachment whose result cannot be printed is deleted", () => {
    const script = `exec ${PATCHBAY} add n /x ${here().join(" ")} >/dev/full`;
    expect(runToEnd(["sh", "-c", script], { env: {} }))
      .toMatchObject({ code: 1, stderr: expect.stringContaining("no space left on device") });
    expect(at.calls()).toEqual(["ADD one", "DEL one"]);
    expect(readdirSync(`${at.runtime.cacheDirectory}/results`)).toEqual([]);
  });

  test("foreign plugins keep the umask we were given; our own files are private", () => {
    writeFileSync(`${at.runtime.pluginPath}/one`, `#!/bin/sh\numask >${at.directory}/umask\necho '{}'\n`);
    const script = `umask 022; exec ${PATCHBAY} add n /x ${here().join(" ")}`;
    expect(Bun.spawnSync(["sh", "-c", script], { env: { PATH: "/bin:/usr/bin" } }).exitCode).toBe(0);
    expect(readFileSync(`${at.directory}/umask`, "utf8")).toBe("0022\n");
  });
});

describe("completion", () => {
  const complete = (words: string[], program = patchbay) =>
    program(["__complete", ...words], { NETCONFPATH: configs }).stdout.split("\n").slice(0, -1);

  test("knows commands, their options, and the networks", () => {
    expect(complete([""])).toEqual(expect.arrayContaining(["add", "completion", "help", "install"]));
    expect(complete([""], cnitool)).toEqual(["add", "check", "completion", "del", "gc", "help", "status"]);
    expect(complete(["in"])).toEqual(["inspect", "install"]);
    expect(complete(["help", "ad"])).toEqual(["add"]);
    expect(complete(["add", "--if"])).toEqual(["--ifname"]);
    expect(complete(["add", ""])).toEqual(["n"]);
    expect(complete(["add", "-i", "eth1", ""])).toEqual(["n"]);
    expect(complete(["add", "-i", ""])).toEqual([]);
    expect(complete(["completion", ""])).toEqual(["bash", "fish", "zsh"]);
    expect(complete(["conformance", "--kind", ""])).toEqual(["ipam", "main", "meta"]);
    expect(complete(["nope", ""])).toEqual([]);
  });

  test("bash completes by the script", () => {
    for (const name of ["patchbay", "cnitool"]) {
      if (name === "patchbay") symlinkSync(PATCHBAY, `${at.directory}/patchbay`);
      const script =
        `set -e; source <(${name} completion bash); complete -p ${name} >&2; COMP_WORDS=(${name} add ""); ` +
        `COMP_CWORD=2; _${name}; echo "\${COMPREPLY[@]}"; COMP_WORDS=(${name} ga); COMP_CWORD=1; _${name} || true; ` +
        `COMP_WORDS=(${name} ch); _${name}; echo "\${COMPREPLY[@]}"`;
      const env = { PATH: `${at.directory}:/usr/bin:/bin`, NETCONFPATH: configs };
      expect(runToEnd(["bash", "-c", script], { env }))
        .toMatchObject({ stdout: "n\ncheck\n", stderr: `complete -F _${name} ${name}\n` });
    }
  });

  // As root types the word, it is a name again, and nothing else happens.
  test.each([
    "two words",
    "*",
    "$(touch canary)",
    "`touch canary`",
    ";touch canary",
    "it's",
    "a\\b",
    "~",
    "tab\there",
  ])(
    "bash completes a network %p as one word that means the name",
    (name) => {
      symlinkSync(PATCHBAY, `${at.directory}/patchbay`);
      writeFileSync(`${configs}/n.conflist`, at.network(["one"], { name }).source);
      const script = 'set -e; source <(patchbay completion bash); COMP_WORDS=(patchbay add ""); COMP_CWORD=2; ' +
        '_patchbay; echo "${#COMPREPLY[@]}"; eval "words=(${COMPREPLY[0]})"; printf "%s\\n" "${words[@]}"';
      const env = { PATH: `${at.directory}:/usr/bin:/bin`, NETCONFPATH: configs, HOME: "/nowhere" };
      expect(runToEnd(["bash", "-c", script], { env, cwd: at.directory }))
        .toMatchObject({ stdout: `1\n${name}\n`, stderr: "" });
      expect(readdirSync(at.directory)).not.toContain("canary");
    },
  );

  test.each(["zsh", "fish"])("%s reads its script", (shell) => {
    const stdin = new TextEncoder().encode(patchbay(["completion", shell]).stdout);
    expect(runToEnd([shell, "-n"], { stdin })).toMatchObject({ code: 0, stderr: "" });
  });

  test("fish completes by the script", () => {
    const script = "cnitool completion fish | source; complete -C 'cnitool add '; complete -C 'cnitool ga'; " +
      "complete -C 'cnitool c'";
    const env = { PATH: `${at.directory}:/usr/bin:/bin`, NETCONFPATH: configs, HOME: at.directory };
    const { stdout, stderr } = runToEnd(["fish", "--no-config", "-c", script], { env });
    expect(stderr).toBe("");
    expect(stdout.split("\n").map((line) => line.split("\t")[0])).toEqual(["n", "check", "completion", ""]);
  });

  test("another shell is refused", () => {
    expect(patchbay(["completion", "tcsh"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there are scripts for bash, zsh, fish, not tcsh"),
    });
  });
});

describe("called as cnitool", () => {
  test("too few arguments", () => {
    const { code, stdout, stderr } = cnitool(["add", "n"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toStartWith("Error: requires at least 2 arg(s), only received 1\nUsage: cnitool add");
    expect(stderr).toEndWith("\nrequires at least 2 arg(s), only received 1\n");
  });

  test("an unknown command, and one of ours", () => {
    for (const name of ["x", "install"]) {
      const text = `unknown command "${name}" for "cnitool"`;
      expect(cnitool([name]))
        .toEqual({ code: 1, stdout: "", stderr: `Error: ${text}\nRun 'cnitool --help' for usage.\n${text}\n` });
    }
  });

  test("no command prints the help; more arguments than needed are no error", () => {
    expect(cnitool([])).toMatchObject({ code: 0, stderr: "" });
    at.plugin("one", { ADD: { stdout: {} } });
    expect(cnitool(["add", "n", "/x", "more", ...here()])).toMatchObject({ code: 0 });
  });

  test("an error stands before and after the usage", () => {
    at.plugin("one", { ADD: { stdout: { code: 11, msg: "try", details: "later" }, exit: 3 } });
    const { code, stderr } = cnitool(["add", "n", "/x", ...here()]);
    expect(code).toBe(1);
    expect(stderr).toStartWith('Error: plugin type="one" failed (add): try; later\nUsage: cnitool add');
    expect(stderr).toEndWith('\nplugin type="one" failed (add): try; later\n');
  });
});
