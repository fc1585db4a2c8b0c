/**
 * Builds `dist/patchbay`: bundle, compile, place the code, guard the entry. Run with Bun: `npm run build`.
 *
 * The same sources and the same Bun give the same bytes wherever and whenever they are built; the name of the output
 * file is part of the result, so it is fixed. Needs no network. `--out DIR` builds somewhere else than `dist`.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { alignCode } from "./align-code.ts";
import { guardEntry } from "./entry-guard.ts";
import { leaveHeapCold } from "./heap-warm-up.ts";

const root = resolve(import.meta.dir, "..");
const NAME = "patchbay";

export const flags = [
  "--compile",
  "--target=bun",
  "--minify",
  "--bytecode",
  "--reject-unresolved",
  // Compiling what ran a few hundred times pays in a server; here it starts a thread that the process does not outlive.
  // Measured: 0.5 ms of VERSION, without losing the compiler for the long loops of large stores.
  "--compile-jit-policy=10",
  // A program that root runs must not read files of whatever directory it is started in.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

export function build(outDirectory: string, entry = join(root, "src/main.ts")): string {
  const temporary = join(outDirectory, `.build-${process.pid}`);
  mkdirSync(temporary, { recursive: true });
  try {
    const compiled = join(temporary, NAME);
    const built = Bun.spawnSync([process.execPath, "build", ...flags, `--outfile=${compiled}`, entry], {
      cwd: root,
      // What the caller's environment says to Bun must not decide what comes out.
      env: { PATH: process.env.PATH ?? "", HOME: temporary },
      stdout: "pipe",
      stderr: "pipe",
    });
    if (built.exitCode !== 0) throw new Error(`bun build failed:\n${built.stderr}${built.stdout}`);
    const program = readFileSync(compiled);
    leaveHeapCold(program);
    // One large write, and into a new file: the page cache then holds the program in large pieces (align-code.ts).
    const finished = join(temporary, `${NAME}.finished`);
    writeFileSync(finished, guardEntry(alignCode(program)));
    chmodSync(finished, 0o755);
    const out = join(outDirectory, NAME);
    renameSync(finished, out);
    return out;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { out: { type: "string", default: join(root, "dist") } } });
  const started = performance.now();
  try {
    const out = build(resolve(values.out));
    const megabytes = (readFileSync(out).length / 1e6).toFixed(0);
    console.log(`built ${out} (${megabytes} MB, ${((performance.now() - started) / 1000).toFixed(1)} s)`);
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}
