/** Bun's executable for another processor is the one that package-lock.json names, or none. A script stands in for npm. */
import { afterAll, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");
const directory = mkdtempSync(join(tmpdir(), "patchbay-bun-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A checkout whose npm answers with this archive. */
function checkout(name: string, archive: Uint8Array, integrity: string) {
  const top = join(directory, name), bin = join(top, "bin");
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(top, "compile"));
  for (const file of ["compile/bun-executable.mjs", "compile/architectures.json", "package.json"]) {
    cpSync(join(root, file), join(top, file));
  }
  const packages = { "node_modules/@oven/bun-linux-aarch64": { version: "1.2.3", integrity } };
  writeFileSync(join(top, "package-lock.json"), JSON.stringify({ packages }));
  writeFileSync(join(top, "archive"), archive);
  const script =
    `#!/bin/sh\necho "$@" >${top}/said\nfor word; do case $word in --pack-destination=*) cp ${top}/archive` +
    ` "\${word#*=}/bun.tgz";; esac; done\n`;
  writeFileSync(join(bin, "npm"), script, { mode: 0o755 });
  const fetching = `const { fetchBun, bunExecutable } = await import("./compile/bun-executable.mjs");
    fetchBun("arm64"); console.log(bunExecutable("arm64"));`;
  const run = Bun.spawnSync([process.execPath, "-e", fetching], {
    cwd: top,
    env: { PATH: `${bin}:${process.env.PATH}` },
    stderr: "pipe",
  });
  return { top, code: run.exitCode, stdout: run.stdout.toString().trim(), stderr: run.stderr.toString() };
}

function archiveWith(content: string): Uint8Array {
  mkdirSync(join(directory, "package/bin"), { recursive: true });
  writeFileSync(join(directory, "package/bin/bun"), content, { mode: 0o755 });
  return Bun.spawnSync(["tar", "-cz", "-C", directory, "package"]).stdout;
}

const integrityOf = (bytes: Uint8Array) => `sha512-${new Bun.CryptoHasher("sha512").update(bytes).digest("base64")}`;

test("the package that package-lock.json names is fetched and unpacked", () => {
  const archive = archiveWith("the executable");
  const { top, code, stdout, stderr } = checkout("right", archive, integrityOf(archive));
  expect([code, stderr]).toEqual([0, ""]);
  expect(readFileSync(join(top, "said"), "utf8")).toMatch(/^pack .* @oven\/bun-linux-aarch64@1\.2\.3\n$/);
  expect(readFileSync(stdout, "utf8")).toBe("the executable");
  expect(readdirSync(join(stdout, ".."))).toEqual(["bun"]);
});

test("another package is refused, and leaves nothing", () => {
  const { top, code, stderr } = checkout("wrong", archiveWith("another"), integrityOf(archiveWith("the executable")));
  expect(code).toBe(1);
  expect(stderr).toContain("@oven/bun-linux-aarch64 is not the package that package-lock.json names");
  expect(existsSync(join(top, ".cache")) ? readdirSync(join(top, ".cache")) : []).toEqual([]);
});
