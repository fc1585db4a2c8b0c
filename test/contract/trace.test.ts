/** PATCHBAY_TRACE: what a verb did, as lines of JSON, in the named file and only in files that are safe to write. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { PATCHBAY } from "../support/plugins.ts";
import { openMachine } from "../support/machine.ts";

let directory: string;
beforeEach(() => void (directory = mkdtempSync(`${tmpdir()}/trace-`)));
afterEach(() => rmSync(directory, { recursive: true }));

type Line = Record<string, unknown>;
const linesOf = (text: string): Line[] =>
  text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));

test("ADD, CHECK and DEL trace every operation, delegates, and the reason for a backend", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.40.0.0/24" }]] };
  const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipam };
  const tuning = { type: "tuning", sysctl: { "net.core.somaxconn": "500" } };
  writeFileSync(
    `${directory}/n.conflist`,
    JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins: [bridge, tuning] }),
  );
  const patchbay = async (verb: string) => {
    const env = { NETCONFPATH: directory, PATCHBAY_TRACE: "1" };
    const command = [PATCHBAY, verb, "n", container.netnsPath, "--container-id", "ctr"];
    const { code, stdout, stderr } = await machine.run(command, { env });
    return { code, stdout, lines: linesOf(stderr) };
  };
  const operations = (lines: Line[]) =>
    lines.map(({ plugin, operation, kind, note }) => [plugin, operation ?? note, kind].filter(Boolean).join(" "));
  const added = await patchbay("add");
  expect(added.code).toBe(0);
  expect(JSON.parse(added.stdout).ips).toHaveLength(1);
  expect(operations(added.lines)).toEqual([
    "bridge apply bridge",
    "bridge apply veth",
    "bridge apply bridge-port",
    "bridge apply host-end-up",
    "host-local verb",
    "bridge apply ipam",
    "bridge apply addressing",
    "bridge apply bridge-gateway",
    "bridge apply forwarding",
    "bridge masquerade backend",
    "bridge apply masquerade",
    "bridge apply carrier",
    "bridge apply announcement",
    "bridge verb",
    "tuning apply sysctls",
    "tuning verb",
    "command",
  ]);
  for (const line of added.lines.slice(0, -1)) {
    expect(line).toMatchObject({ verb: "ADD", network: "n", containerId: "ctr", ifName: "eth0" });
    if (line.operation !== undefined) expect(line.ms).toBeNumber();
  }
  expect(added.lines.at(-1)).toMatchObject({ command: "add", ms: expect.any(Number) });
  expect(added.lines.find(({ note }) => note === "masquerade backend")).toMatchObject({
    backend: "iptables",
    why: "found /usr/sbin/iptables",
  });

  await machine.sh("iptables -t nat -F POSTROUTING");
  const checked = await patchbay("check");
  expect(checked.code).toBe(1);
  const [difference] = checked.lines.filter(({ differences }) => differences !== undefined);
  expect(difference).toMatchObject({ operation: "verify", kind: "masquerade", verb: "CHECK" });
  expect(checked.lines.filter(({ error }) => error !== undefined)).toEqual([
    expect.objectContaining({ operation: "verb", plugin: "bridge", error: expect.stringContaining("POSTROUTING") }),
  ]);
  expect(operations(checked.lines).slice(-2)).toEqual(["tuning verb", "command"]);

  const { code, lines } = await patchbay("del");
  expect(code).toBe(0);
  expect(operations(lines).slice(0, 3)).toEqual([
    "tuning remove sysctls",
    "tuning verb",
    "bridge remove announcement",
  ]);
  expect(operations(lines)).toContain("bridge remove veth");
});

const run = (trace: string | undefined) => {
  const env: Record<string, string> = {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "c",
    CNI_IFNAME: "eth0",
    CNI_PATH: "/x",
  };
  const stdin = JSON.stringify({
    cniVersion: "1.0.0",
    name: "n",
    type: "static",
    ipam: { type: "static", addresses: [{ address: "10.0.0.1/24" }] },
  });
  const all = {
    ...env,
    CNI_NETNS: "/proc/self/ns/net",
    CNI_NETNS_OVERRIDE: "1",
    ...trace === undefined ? {} : { PATCHBAY_TRACE: trace },
  };
  const link = `${directory}/static`;
  symlinkSync(PATCHBAY, link);
  const { exitCode, stdout, stderr } = Bun.spawnSync([link], { env: all, stdin: Buffer.from(stdin) });
  rmSync(link);
  return { code: exitCode, stdout: String(stdout), stderr: String(stderr) };
};

test("without the variable, or with 0, nothing is traced", () => {
  const silent = run(undefined);
  expect(silent).toMatchObject({ code: 0, stderr: "" });
  expect(run("0")).toEqual(silent);
  expect(run("")).toEqual(silent);
});

test("lines are appended to a file that only its owner can read", () => {
  const file = `${directory}/trace`;
  const untraced = run(undefined);
  expect(run(file)).toEqual(untraced);
  expect(run(file)).toEqual(untraced);
  expect(linesOf(readFileSync(file, "utf8"))).toMatchObject([
    { plugin: "static", operation: "verb" },
    { plugin: "static", operation: "verb" },
  ]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a link, a pipe or a file of another user is not written to, and the verb continues", () => {
  const untraced = run(undefined);
  const victim = `${directory}/victim`;
  const refused: Record<string, (path: string) => void> = {
    "symbolic link": (path) => symlinkSync(victim, path),
    "another name": (path) => linkSync(victim, path),
    "pipe": (path) => void Bun.spawnSync(["mkfifo", path]),
    "directory": (path) => mkdirSync(path),
    "open to others": (path) => (writeFileSync(path, ""), chmodSync(path, 0o666)),
  };
  writeFileSync(victim, "victim", { mode: 0o600 });
  for (const [what, make] of Object.entries(refused)) {
    const path = `${directory}/${what}`;
    make(path);
    const { code, stdout, stderr } = run(path);
    expect({ what, code, stdout }).toEqual({ what, code: 0, stdout: untraced.stdout });
    expect(stderr).toStartWith("patchbay: nothing is traced to PATCHBAY_TRACE: ");
    expect(readFileSync(victim, "utf8")).toBe("victim");
  }
  expect(run("trace").stderr).toContain('it must be 1 or the absolute path of a file, not "trace"');
});

test("a stderr that cannot be written does not fail the verb", () => {
  const link = `${directory}/static`;
  symlinkSync(PATCHBAY, link);
  const { exitCode } = Bun.spawnSync(
    ["sh", "-c", `echo '{"cniVersion":"1.0.0","name":"n"}' | ${link} 2> /dev/full`],
    {
      env: {
        CNI_COMMAND: "DEL",
        CNI_CONTAINERID: "c",
        CNI_IFNAME: "eth0",
        CNI_PATH: "/x",
        PATCHBAY_TRACE: "1",
        PATH: process.env.PATH,
      },
    },
  );
  expect(exitCode).toBe(0);
});
