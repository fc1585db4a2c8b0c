/**
 * Faults as a maintainer could make them, of which faults.txt has the list: each changes one line, and the tests listed
 * with it must notice. run.ts puts them in.
 *
 * A line of faults.txt that begins with a path names a source and tests of it, with a regular expression for the names
 * of tests where files take long. The faults that these tests must notice follow, each as "text → what it becomes". The
 * text stands nowhere else in the source. What mutations.ts makes by itself is not in the list.
 */
import { readFileSync } from "node:fs";

export interface SourceAndTests {
  file: string;
  tests: readonly string[];
  /** A regular expression for the names of tests. */
  named?: string;
}

export interface Fault extends SourceAndTests {
  find: string;
  replace: string;
}

const lines = readFileSync(`${import.meta.dir}/faults.txt`, "utf8").trimEnd().split("\n");

export const sources: SourceAndTests[] = [];
export const faults: Fault[] = [];
for (const line of lines) {
  if (line.startsWith("  ")) faults.push({ ...sources.at(-1)!, ...faultIn(line.slice(2)) });
  else sources.push(sourceIn(line));
}

function faultIn(line: string): Pick<Fault, "find" | "replace"> {
  const [find, replace, ...more] = line.split(/ →(?: |$)/);
  if (replace === undefined || more.length > 0) throw new Error(`faults.txt: ${line}`);
  return { find: find!, replace };
}

function sourceIn(line: string): SourceAndTests {
  const [, file, tests, named] = /^(\S+) by ([^:]+)(?:: (.+))?$/.exec(line) ?? [];
  if (file === undefined) throw new Error(`faults.txt: ${line}`);
  return { file, tests: tests!.split(" "), ...named !== undefined && { named } };
}
