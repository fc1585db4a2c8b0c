/**
 * Compiles the C sources in src/native with Debian's gcc: programs without a C library, whose bytes become part of
 * the program. The same gcc gives the same bytes.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Architecture, architectures } from "./architectures.ts";

const sources = resolve(import.meta.dir, "../src/native");

const flags = [
  ...["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror"],
  ...["-ffreestanding", "-nostdlib", "-static", "-fPIE", "-fvisibility=hidden"],
  // There is no C library to call for these.
  ...["-fno-stack-protector", "-fno-tree-loop-distribute-patterns", "-fno-asynchronous-unwind-tables"],
  ...["-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-s"],
];

/** An ELF file made of `NAME.c`, linked as `NAME.ld` says where there is one. */
export function compileNative(name: string, architecture: Architecture): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-native-"));
  try {
    const out = join(directory, name), script = join(sources, `${name}.ld`);
    const linking = existsSync(script) ? [`-Wl,-T,${script}`] : [];
    // By relative names: a full one could become part of the result.
    const command = [architectures[architecture].compiler, ...flags, ...linking, "-o", out, `${name}.c`];
    const { exitCode, stderr } = run(command);
    if (exitCode !== 0) throw new Error(`${command[0]} cannot compile ${name}.c:\n${stderr}`);
    return readFileSync(out);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function run(command: string[]): { exitCode: number; stderr: string } {
  try {
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: sources, stdout: "ignore", stderr: "pipe" });
    return { exitCode, stderr: stderr.toString() };
  } catch {
    throw new Error(`${command[0]} is missing: \`npm run build\` installs what compile/debian-packages.json names`);
  }
}
