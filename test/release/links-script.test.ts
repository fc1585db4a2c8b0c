/** links.sh of the archive: it writes into the root that it is given, and through no link of that to this machine. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeArchive } from "../../release/archive.ts";
import { readEdition } from "../../release/edition.ts";
import { needs } from "../support/needs.ts";

// It asks git for the edition.
needs("git");
const PROGRAM = "#!/bin/false\n";
let directory: string, script: string, top: string, root: string, outside: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "links-"));
  const program = join(directory, "program");
  writeFileSync(program, PROGRAM);
  const archive = makeArchive(program, "x64", { edition: readEdition(), work: directory, out: directory });
  run(["tar", "-xzf", archive, "-C", directory, "--strip-components=1"]);
  script = join(directory, "links.sh");
});
afterAll(() => rmSync(directory, { recursive: true }));

beforeEach(() => {
  top = mkdtempSync(join(directory, "top-"));
  root = join(top, "root");
  outside = join(top, "outside");
  for (const one of [root, outside]) mkdirSync(one);
  writeFileSync(join(outside, "bridge"), "theirs");
});

function run(command: string[], cwd = directory) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

const links = (...args: string[]) => run([script, ...args]);

function expectInstalled(where: string): void {
  expect(readFileSync(join(where, "patchbay"), "utf8")).toBe(PROGRAM);
  expect(lstatSync(join(where, "patchbay")).isFile()).toBe(true);
  expect(readlinkSync(join(where, "host-local"))).toBe("patchbay");
}

const untouched = () =>
  expect([readdirSync(outside), readFileSync(join(outside, "bridge"), "utf8")]).toEqual([["bridge"], "theirs"]);

for (
  const [name, link, to] of [
    ["an absolute link to a directory of this machine", "opt/cni/bin", () => outside],
    ["a relative one", "opt/cni/bin", () => "../../../outside"],
    ["a link further up", "opt/cni", () => outside],
    ["a relative one further up", "opt/cni", () => "../../outside"],
    ["the first directory is one", "opt", () => outside],
    ["one that leads nowhere on this machine", "opt/cni/bin", () => join(outside, "usr/lib/cni")],
    ["one that leads nowhere, further up", "opt", () => join(outside, "var/opt")],
  ] as const
) {
  for (const form of ["ROOT/opt/cni/bin", "ROOT DIR", "ROOT//opt/cni/bin/"]) {
    test(`${name}: ${form} is refused, and nothing is written`, () => {
      mkdirSync(join(root, link, ".."), { recursive: true });
      symlinkSync(to(), join(root, link));
      const args = { "ROOT/opt/cni/bin": [`${root}/opt/cni/bin`], "ROOT DIR": [root, "/opt/cni/bin"] };
      const { code, stdout, stderr } = links(...args[form as keyof typeof args] ?? [`${root}//opt/cni/bin/`]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(
        /^links\.sh: .* (not below .*: a link in it is of that system|leads nowhere on this machine)/,
      );
      untouched();
      expect(readlinkSync(join(root, link))).toBe(to());
    });
  }
}

test("another plugin directory, whose root is not known, is no link", () => {
  mkdirSync(join(root, "srv"));
  symlinkSync(outside, join(root, "srv/cni"));
  expect(links(join(root, "srv/cni"))).toMatchObject({ code: 1, stdout: "" });
  rmSync(join(root, "srv"), { recursive: true });
  symlinkSync(outside, join(root, "srv"));
  expect(links(root, "srv/cni")).toMatchObject({ code: 1, stdout: "" });
  untouched();
});

test("a program that is a link to a directory is replaced, and nothing is put into that", () => {
  mkdirSync(join(root, "opt/cni/bin"), { recursive: true });
  for (const name of ["patchbay", "bridge", ".patchbay.new"]) symlinkSync(outside, join(root, "opt/cni/bin", name));
  expect(links(join(root, "opt/cni/bin"))).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(root, "opt/cni/bin"));
  expect(readlinkSync(join(root, "opt/cni/bin/bridge"))).toBe("patchbay");
  untouched();
});

test("ordinary roots: there or not, with links that stay below them, and the machine's own links above them", () => {
  expect(links(join(root, "opt/cni/bin"))).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(root, "opt/cni/bin"));
  // Once more: it replaces its own.
  expect(links(root, "opt/cni/bin")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(links(join(top, "new/usr/lib/cni"))).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(top, "new/usr/lib/cni"));
  mkdirSync(join(root, "var/lib/bin"), { recursive: true });
  symlinkSync("var/lib", join(root, "usr"));
  expect(links(root, "/usr/bin/cni")).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(root, "var/lib/bin/cni"));
  symlinkSync(root, join(top, "way"));
  expect(links(join(top, "way/usr/libexec/cni"))).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(root, "var/lib/libexec/cni"));
  expect(run([script, "opt/cni/bin"], top)).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(top, "opt/cni/bin"));
  expect(run([script, "-a name"], top)).toEqual({ code: 0, stdout: "", stderr: "" });
  expectInstalled(join(top, "-a name"));
});

test("calls may start a resident where the root has no systemd, unless somebody has chosen otherwise", () => {
  const bin = join(root, "opt/cni/bin"), permission = join(bin, ".patchbay-resident");
  mkdirSync(bin, { recursive: true });
  symlinkSync(join(outside, "bridge"), permission);
  expect(links(bin).code).toBe(0);
  expect([lstatSync(permission).isFile(), readFileSync(permission, "utf8")]).toEqual([
    true,
    expect.stringContaining("starts a resident"),
  ]);
  untouched();
  rmSync(permission);
  expect([links(bin).code, existsSync(permission)]).toEqual([0, false]);
  rmSync(bin, { recursive: true });
  mkdirSync(join(root, "usr/lib/systemd"), { recursive: true });
  writeFileSync(join(root, "usr/lib/systemd/systemd"), "");
  expect([links(bin).code, existsSync(permission)]).toEqual([0, false]);
});

test("what is no call of it is told", () => {
  for (const args of [[], [""], ["a", "b", "c"]]) {
    expect(links(...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Usage: links.sh ROOT/opt/cni/bin"),
    });
  }
  mkdirSync(join(root, "opt/cni/bin/bridge"), { recursive: true });
  expect(links(join(root, "opt/cni/bin"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("bridge is a directory"),
  });
  expect(existsSync(join(root, "opt/cni/bin/patchbay"))).toBe(false);
});
