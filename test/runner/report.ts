/** What a run says at its end: totals, failures once more, durations. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestCase } from "./junit.ts";
import { isForOtherKernel, namedRuns, runOf } from "./long.ts";
import type { Durations } from "./queue.ts";
import { testFiles } from "./test-files.ts";
import type { Counts, FileResult } from "./test-process.ts";

/** One boot of the virtual machine. */
export interface VmResult extends Counts {
  processorSeconds: number;
  output: string;
  cases: TestCase[];
}

export interface Results {
  files: FileResult[];
  vm: VmResult[];
}

const recorded = join(import.meta.dir, "durations.json");

export function say(text: string): void {
  console.log(`[patchbay] ${text}`);
}

export function describe({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** Says again what failed and why; it stood somewhere in thousands of lines. */
export function repeatFailures({ files, vm }: Results): void {
  const tell = (title: string, text = "") => console.log(`\nFAILED ${title}\n${text.trim().replace(/^/gm, "    ")}`);
  for (const { file, cases, trouble, output } of files) {
    tellCases(file, cases);
    if (trouble !== undefined) tell(`${file}: ${trouble}`, output.split("\n").slice(-30).join("\n"));
  }
  for (const { cases, failed, output } of vm) {
    for (const file of new Set(cases.map((one) => one.file))) {
      tellCases(`${file} (virtual machine)`, cases.filter((one) => one.file === file));
    }
    const ownFailures = output.split("\n").filter((line) => line.startsWith("[vm] FAILED"));
    if (ownFailures.length > 0 || failed > 0 && !cases.some(({ outcome }) => outcome === "failed")) {
      tell("in the virtual machine", ownFailures.join("\n") || output.slice(-2000));
    }
  }

  function tellCases(place: string, cases: readonly TestCase[]) {
    for (const { name, outcome, failure } of cases) if (outcome === "failed") tell(`${place}: ${name}`, failure);
  }
}

/** Files that skip tests, which no run would then run. */
export function nowhereRun({ files }: Results): string[] {
  return files.filter(({ file, skipped }) => skipped > 0 && !isForOtherKernel(file)).map(({ file }) => file);
}

/** The tests that ran neither here nor in the virtual machine. */
export function ranNowhere({ files, vm }: Results): string[] {
  const key = ({ file, name }: TestCase) => `${file}: ${name}`;
  const cases = (of: readonly { cases: TestCase[] }[]) => of.flatMap((one) => one.cases);
  const ranThere = new Set(cases(vm).filter(({ outcome }) => outcome !== "skipped").map(key));
  return cases(files).filter(({ outcome }) => outcome === "skipped").map(key).filter((one) => !ranThere.has(one));
}

/** In a run with the virtual machine, tests count as skipped that ran neither here nor there, and none may be. */
export function total(results: Results, usesVm: boolean): Counts {
  const all = [...results.files, ...results.vm];
  const sum = (key: keyof Counts) => all.reduce((total, one) => total + one[key], 0);
  const passed = sum("passed"), failed = sum("failed");
  if (!usesVm) return { passed, failed, skipped: sum("skipped") };
  const skipped = ranNowhere(results).length;
  return { passed, failed: failed === 0 && skipped > 0 ? 1 : failed, skipped };
}

export function readDurations(): Durations {
  return JSON.parse(readFileSync(recorded, "utf8"));
}

/** Keeps what is known of files that did not run, and forgets files that are gone. */
export function record({ files, vm }: Results, top: string): void {
  const known = readDurations();
  const inVm = vm.flatMap(({ cases }) => cases);
  for (const { file, seconds, processorSeconds } of files) {
    const own = runOf(file), isOnce = own.env.PATCHBAY_TEST_RESIDENT === undefined;
    const there = inVm.filter((one) => isOnce && one.file === own.file).reduce((sum, one) => sum + one.seconds, 0);
    const busy = Math.round(processorSeconds);
    known[file] = { here: Math.round(seconds), busy, vm: vm.length > 0 ? Math.round(there) : known[file]?.vm };
  }
  const all = [...testFiles(top), ...namedRuns].sort().filter((file) => known[file]?.here || known[file]?.vm);
  const lines = all.map((file) => {
    const { here = 0, busy, vm = 0 } = known[file]!;
    const parts = [`"here": ${here}`, busy === undefined ? [] : `"busy": ${busy}`, vm === 0 ? [] : `"vm": ${vm}`];
    return `  ${JSON.stringify(file)}: { ${parts.flat().join(", ")} }`;
  });
  writeFileSync(recorded, `{\n${lines.join(",\n")}\n}\n`);
}

/** What a file skips through a resident, its plain run skips as well, and that counts. */
export function withoutSkipped(result: FileResult): FileResult {
  return { ...result, skipped: 0, cases: result.cases.filter(({ outcome }) => outcome !== "skipped") };
}
