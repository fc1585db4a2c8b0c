/**
 * The build for musl, on a host that has musl and nothing of glibc, as Alpine: Debian's musl 1.2.5, a static shell, and the
 * compiler's library that Alpine has in a package.
 */
import { beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { architectures } from "../../compile/architectures.ts";
import { bunExecutable } from "../../compile/bun-executable.mjs";
import { withoutFirstCode } from "../support/without-first-code.ts";
import { muslRoot } from "./roots.ts";
import { chainIsAttached, onHost, pluginsAreCalled, uninstalls } from "./story.ts";

const top = resolve(import.meta.dir, "../.."), ARCHITECTURE = "x64-musl";
const program = join(top, architectures[ARCHITECTURE].out, "patchbay");
const host = () => ({ root: muslRoot(bunExecutable(ARCHITECTURE)), program });

beforeAll(() => {
  const built = Bun.spawnSync(["node", "compile/setup.mjs", "--arch", ARCHITECTURE], { cwd: top });
  expect([built.exitCode, built.stderr.toString()]).toEqual([0, ""]);
});

test("the host has no loader of glibc, and the program needs none", () =>
  onHost(host(), async (inside) => {
    expect(await inside.sh("cat /lib/ld-linux* /lib64/* 2>/dev/null || echo none")).toBe("none\n");
    expect((await inside.run(["/lib/ld-musl-x86_64.so.1"])).stderr).toContain("Version 1.2.5");
    expect(await inside.run(["/opt/program/patchbay", "version"])).toMatchObject({ code: 0, stderr: "" });
  }));

test("the build for glibc says there what is missing", () =>
  onHost({ ...host(), program: join(top, "dist/patchbay") }, async (inside) => {
    const { code, stderr } = await inside.run(["/opt/program/patchbay", "version"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("no dynamic loader /lib64/ld-linux-x86-64.so.2")]);
  }));

test("the runtime takes the bytecode", async () => {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-musl-")), path = join(directory, "patchbay");
  try {
    writeFileSync(path, withoutFirstCode(program), { mode: 0o755 });
    await onHost({ ...host(), program: path }, async (inside) => {
      const env = { BUN_JSC_verboseDiskCache: "1" };
      const { stdout, stderr } = await inside.run(["/opt/program/patchbay", "version"], { env });
      expect(stdout).toStartWith("patchbay ");
      expect(stderr).toContain("Cache hit for sourceCode");
      expect(stderr).not.toContain("Cache miss");
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("ADD, CHECK, GC and DEL of an installed plugin", () => pluginsAreCalled(host(), "nftables"));
test("a chain", () => chainIsAttached(host(), "nftables", false));
test("a chain through a resident", () => chainIsAttached(host(), "nftables", true));
test("uninstalled", () => uninstalls(host()));
