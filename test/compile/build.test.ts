/** The build is reproducible: the same sources give the same bytes in any directory and environment. */
import { afterAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { needs } from "../support/needs.ts";

needs("root");

const root = resolve(import.meta.dir, "../..");
const directory = mkdtempSync(join(tmpdir(), "patchbay-build-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A checkout of its own with the sources as they are now. */
function checkout(name: string): string {
  const copy = join(directory, name);
  mkdirSync(copy);
  for (const entry of ["src", "compile", "package.json", "tsconfig.json", "bunfig.toml"]) {
    cpSync(join(root, entry), join(copy, entry), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

function buildIn(copy: string, env: Record<string, string>): string {
  // No network in there: a build needs only what node_modules holds.
  const words = ["unshare", "--net", process.execPath, "compile/build.ts"];
  const built = Bun.spawnSync(words, { cwd: copy, env, stdout: "pipe", stderr: "pipe" });
  expect(built.stderr.toString()).toBe("");
  return new Bun.CryptoHasher("sha256").update(readFileSync(join(copy, "dist/patchbay"))).digest("hex");
}

test("the same sources give the same bytes, wherever, whenever and in whatever environment they are built", () => {
  const one = checkout("one"), other = checkout("a-longer-name");
  const PATH = process.env.PATH!;
  const first = buildIn(one, { PATH, TZ: "UTC", LANG: "C" });
  const second = buildIn(other, {
    PATH,
    TZ: "Asia/Kathmandu",
    LANG: "de_DE.UTF-8",
    BUN_CONFIG_NOTHING: "1",
    CI: "true",
  });
  expect(second).toBe(first);
}, 300_000);
