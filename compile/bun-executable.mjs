/**
 * Bun's executable for another processor or C library, which becomes part of the program that is built for it: from its npm package,
 * as package-lock.json has it, kept in `.cache`. Fetched once; later builds need no network.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");
export const readJson = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));

/** Bun's executable, in the version that package.json pins. */
export function bunExecutable(architecture) {
  const { bun } = readJson("compile/architectures.json")[architecture];
  return join(root, ".cache", `${basename(bun)}-${readJson("package.json").devDependencies.bun}`, "bun");
}

/** Throws when the package cannot be fetched, or is not the one that package-lock.json names. */
export function fetchBun(architecture) {
  const path = bunExecutable(architecture), { bun: name } = readJson("compile/architectures.json")[architecture];
  const locked = readJson("package-lock.json").packages[`node_modules/${name}`];
  const directory = join(path, ".."), unfinished = `${directory}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    run("npm", ["pack", "--silent", `--pack-destination=${unfinished}`, `${name}@${locked.version}`]);
    const archive = join(unfinished, readdirSync(unfinished)[0]);
    const integrity = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (integrity !== locked.integrity) throw new Error(`${name} is not the package that package-lock.json names`);
    run("tar", ["-xzf", archive, "-C", unfinished, "--strip-components=2", "package/bin/bun"]);
    rmSync(archive);
    if (existsSync(directory)) rmSync(directory, { recursive: true });
    renameSync(unfinished, directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

function run(command, words) {
  const { status, stdout, stderr, error } = spawnSync(command, words, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${words[0]}: ${error?.message ?? `${stdout}${stderr}`}`);
}
