/** Runs `patchbay conformance`, which makes its own hosts and containers, so it needs no machine. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { forPrograms } from "../../src/conformance/report.ts";
import { OWN_PLUGINS } from "../../src/conformance/run-directories.ts";
import { PATCHBAY } from "./plugins.ts";

export type Report = ReturnType<typeof forPrograms>;
type PluginOf = Report["plugins"][number];

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export async function runConformance(...args: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([PATCHBAY, "conformance", ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code: child.exitCode, stdout, stderr };
}

export async function reportOn(...args: readonly string[]): Promise<{ code: number | null; report: Report }> {
  const { code, stdout, stderr } = await runConformance("--json", ...args);
  if (!stdout.startsWith("{")) throw new Error(`exit ${code}: ${stderr}`);
  return { code, report: JSON.parse(stdout) };
}

/** `demand: what was seen`, of those that failed. */
export function failuresOf({ demands }: PluginOf): string[] {
  return demands.filter(({ outcome }) => outcome === "failed").map(({ name, ...seen }) =>
    `${name}: ${(seen as { reason?: string }).reason}`
  );
}

export function failedDemands({ demands }: PluginOf): string[] {
  return demands.filter(({ outcome }) => outcome === "failed").map(({ name }) => name);
}

export interface PluginDirectory extends Disposable {
  readonly path: string;
}

/** Shell scripts by plugin name; `$real` is the directory with ours that each run has, wherever this checkout is. */
export function pluginDirectory(scripts: Readonly<Record<string, string>>): PluginDirectory {
  const path = mkdtempSync(join(tmpdir(), "conformance-"));
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(path, name), `#!/bin/sh\nreal=${OWN_PLUGINS}\n${script}\n`);
    chmodSync(join(path, name), 0o755);
  }
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}
