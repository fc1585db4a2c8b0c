/**
 * `patchbay install` into a directory that has some of it already: complete and read-only, damaged, of a process that was
 * killed, or of one that is at work.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { haveSameBytes } from "../../src/ffi/directory-entries.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { openMachine } from "../support/machine.ts";
import { writeOtherBuild } from "../support/other-build.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { runToEnd } from "../support/run-to-end.ts";

let other: string, builds: string;
beforeAll(() => {
  builds = mkdtempSync(`${tmpdir()}/install-builds-`);
  other = writeOtherBuild(`${builds}/patchbay`, 1);
});
afterAll(() => rmSync(builds, { recursive: true }));

let directory: string, bin: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/install-`);
  bin = `${directory}/bin`;
});
afterEach(() => rmSync(directory, { recursive: true }));

function call(words: readonly string[]) {
  return runToEnd(words, { env: { PATH: process.env.PATH ?? "", PATCHBAY_STATE_DIR: `${directory}/ledgers` } });
}

// Nor does it touch the machine's own services.
const installing = [PATCHBAY, "install", "--no-resident"];
const install = (program = PATCHBAY) => call([program, ...installing.slice(1), bin]);
const COMPLETE = ["patchbay", ...pluginNames].sort();

function expectComplete(program = PATCHBAY): void {
  expect(readdirSync(bin).filter((name) => name !== ".patchbay-backup").sort()).toEqual(COMPLETE);
  for (const name of pluginNames) expect(readlinkSync(`${bin}/${name}`)).toBe("patchbay");
  expect(haveSameBytes(`${bin}/patchbay`, program)).toBe(true);
  expect(lstatSync(`${bin}/patchbay`).mode & 0o7777).toBe(0o755);
}

const SAYS_REPLACED = () => ({ code: 0, stdout: `${bin}/patchbay: replaced\n`, stderr: "" });

test.each<[what: string, spoil: (program: string) => void]>([
  ["of another build", (program) => (rmSync(program), linkSync(other, program))],
  ["cut off", (program) => truncateSync(program, 1_000_000)],
  ["that others may write to", (program) => chmodSync(program, 0o777)],
  ["that is a link", (program) => (rmSync(program), symlinkSync(PATCHBAY, program))],
])("a program %s is replaced", (_, spoil) => {
  install();
  spoil(`${bin}/patchbay`);
  expect(install()).toEqual(SAYS_REPLACED());
  expectComplete();
});

test("what a process that was killed has left goes, and nothing else", () => {
  install();
  writeFileSync(`${bin}/patchbay.1.tmp`, "half");
  symlinkSync("patchbay", `${bin}/bridge.4711.tmp`);
  mkdirSync(`${bin}/.patchbay-backup`);
  writeFileSync(`${bin}/.patchbay-backup/bridge.1.tmp`, "go bridge");
  for (const name of ["other.1.tmp", "bridge.tmp", "bridge.1.tmp.old"]) writeFileSync(`${bin}/${name}`, "");
  expect(install()).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(readdirSync(bin).sort()).toEqual(
    [".patchbay-backup", ...COMPLETE, "bridge.1.tmp.old", "bridge.tmp", "other.1.tmp"].sort(),
  );
  expect(readdirSync(`${bin}/.patchbay-backup`)).toEqual([]);
});

describe("a read-only directory", () => {
  const readOnly = async () => {
    await using machine = await openMachine();
    await machine.sh(`mount --bind ${bin} ${bin}; mount -o remount,ro,bind ${bin}`);
    return await machine.run([...installing, bin]);
  };
  const listed = () => readdirSync(bin).map((name) => `${name} ${lstatSync(`${bin}/${name}`).ino}`);

  test("that has the same build is success", async () => {
    install();
    writeFileSync(`${bin}/patchbay.1.tmp`, "half");
    expect(await readOnly()).toEqual({ code: 0, stdout: "", stderr: "" });
    expectNothingBut("patchbay.1.tmp");
  });

  test("that is of an immutable file system is not synced", () => {
    install();
    const trace = `${directory}/trace`;
    expect(call(["strace", "-f", "-o", trace, "-e", "trace=fsync", ...installing, bin]).code).toBe(0);
    expect(readFileSync(trace, "utf8")).not.toContain("fsync(");
  });

  test.each<[what: string, prepare: () => void]>([
    ["another build", () => install(other)],
    ["nothing", () => mkdirSync(bin)],
    ["not every name", () => (install(), rmSync(`${bin}/bridge`))],
    ["another plugin of a name", () => (install(), rmSync(`${bin}/bridge`), writeFileSync(`${bin}/bridge`, "go"))],
  ])("that has %s is an error, and nothing is changed", async (_, prepare) => {
    prepare();
    const before = listed();
    expect(await readOnly()).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(
        new RegExp(
          `^patchbay install: .*[Rr]ead-only file system: ${bin} does not have all of patchbay \\S+ as this build has ` +
            "it; mount it writable, install the same build, or name another directory\n$",
        ),
      ),
    });
    expect(listed()).toEqual(before);
  });

  function expectNothingBut(...names: string[]): void {
    expect(readdirSync(bin).sort()).toEqual([...COMPLETE, ...names].sort());
  }
});

test("eight at once, of two builds, each with process number 1: all succeed, and one build is there", async () => {
  install();
  await using machine = await openMachine();
  const processes = Array.from({ length: 8 }, (_, index) => {
    const program = index % 2 === 0 ? other : PATCHBAY;
    // As in containers: the names of temporary files do not differ by the number of the process.
    return machine.run(["unshare", "--pid", "--fork", "--mount-proc", program, ...installing.slice(1), bin]);
  });
  for (const outcome of await Promise.all(processes)) expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expectComplete(haveSameBytes(`${bin}/patchbay`, other) ? other : PATCHBAY);
});

describe("killed while another build and Go's plugin are replaced", () => {
  const script = "#!/bin/sh\necho go\n";

  /** Another build is there, and another package has put a plugin over one of its links. */
  function prepare(): void {
    rmSync(bin, { recursive: true, force: true });
    mkdirSync(bin);
    linkSync(other, `${bin}/patchbay`);
    for (const name of pluginNames) symlinkSync("patchbay", `${bin}/${name}`);
    rmSync(`${bin}/bridge`);
    writeFileSync(`${bin}/bridge`, script, { mode: 0o755 });
  }

  /** Each name leads to a complete program. */
  function expectPluginsWork(): void {
    const { ino, size } = statSync(`${bin}/patchbay`);
    expect(size).toBe(statSync(PATCHBAY).size);
    expect(ino === statSync(other).ino || haveSameBytes(`${bin}/patchbay`, PATCHBAY)).toBe(true);
    for (const name of pluginNames) {
      const isLink = lstatSync(`${bin}/${name}`).isSymbolicLink();
      if (isLink) expect(readlinkSync(`${bin}/${name}`)).toBe("patchbay");
      else expect(readFileSync(`${bin}/${name}`, "utf8")).toBe(script);
    }
  }

  const injected = (words: readonly string[], trace = "/dev/null") =>
    call(["strace", "-f", "-qq", "-o", trace, ...words, ...installing, bin]);

  test.each(["rename", "link", "symlink", "unlink", "fsync", "fchmod", "mkdir"])("at every %s", (name) => {
    prepare();
    const trace = `${directory}/trace`;
    injected(["-e", `trace=${name}`], trace);
    expectComplete();
    const calls = readFileSync(trace, "utf8").split(`${name}(`).length - 1;
    expect(calls).toBeGreaterThan(0);
    for (let nth = 1; nth <= calls; nth++) {
      prepare();
      const { code } = injected(["-e", `trace=${name}`, "-e", `inject=${name}:signal=KILL:when=${nth}`]);
      expect(code).not.toBe(0);
      expectPluginsWork();
      expect(install()).toMatchObject({ code: 0, stderr: "" });
      expectComplete();
      expect(readdirSync(`${bin}/.patchbay-backup`)).toEqual(["bridge"]);
      expect(readFileSync(`${bin}/.patchbay-backup/bridge`, "utf8")).toBe(script);
    }
  });
});
