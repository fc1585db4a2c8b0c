/**
 * `npm run test:mutants -- PATH…`: how much of what could go wrong the tests notice. Takes a sample of one-line changes of
 * the sources with PATH in their path, puts each into a copy of this checkout, and runs the tests that `npm test --
 * --for` names for its file. Lists what survives. Ends with the line `N noticed, N survived`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { readDurations } from "../runner/report.ts";
import { root } from "../runner/test-files.ts";
import { testsFor } from "../runner/tests-for.ts";
import { newSeed, randomBelow, seedWith } from "../support/random.ts";
import { mutated, type Mutation, mutationsOf } from "./mutations.ts";
import { inCopy, tryChange } from "./trial.ts";

interface Mutant {
  file: string;
  mutation: Mutation;
}

/** Generated files follow from others, and the skeletons of plugins are in no program. */
function mutantsIn(paths: readonly string[]): Mutant[] {
  const files = [...new Bun.Glob("src/**/*.ts").scanSync(root)].sort()
    .filter((file) => paths.some((path) => file.includes(path)))
    .filter((file) => !/\.gen\.ts$|\.schema\.ts$|\/skeleton\//.test(file));
  return files.flatMap((file) =>
    mutationsOf(readFileSync(join(root, file), "utf8")).map((mutation) => ({ file, mutation }))
  );
}

function sample(all: Mutant[], size: number): Mutant[] {
  const left = [...all];
  return Array.from({ length: Math.min(size, all.length) }, () => left.splice(randomBelow(left.length), 1)[0]!);
}

/** The quick ones first: most changes are noticed by one of them. */
function inOrder(tests: readonly string[]): string[] {
  const durations = readDurations();
  return tests.toSorted((one, other) => (durations[one]?.here ?? 0) - (durations[other]?.here ?? 0));
}

async function tryAll(mutants: readonly Mutant[]): Promise<number> {
  const survivors: string[] = [];
  await inCopy(async (directory) => {
    for (const { file, mutation } of mutants) {
      const source = readFileSync(join(root, file), "utf8"), tests = inOrder(testsFor(file));
      const line = mutated(source, mutation).split("\n")[mutation.line - 1]!.trim();
      const what = `${file}:${mutation.line}: ${line}`;
      const end = tests.length === 0
        ? "no test notices"
        : await tryChange(directory, file, (text) => mutated(text, mutation), { tests });
      // What does not build, or ends its tests, is noticed as well.
      const isNoticed = end !== "no test notices";
      console.log(`${isNoticed ? "noticed " : "SURVIVED"} ${what}`);
      if (!isNoticed) survivors.push(what);
    }
  });
  console.log(survivors.map((what) => `\n${what}`).join(""));
  console.log(`${mutants.length - survivors.length} noticed, ${survivors.length} survived`);
  return survivors.length === 0 ? 0 : 1;
}

export const tool = defineTool({
  name: "test:mutants",
  about:
    `Changes one line of the sources with PATH in their path at a time, and lists the changes that no test notices. A
change takes from seconds to minutes. The exit status is 1 when one survives.`,
  words: "PATH…",
  options: {
    sample: { type: "string", default: "60", value: "N", about: "so many changes (60)" },
    seed: { type: "string", value: "NUMBER", about: "chooses the same ones again" },
  },
  needs: "all",
  begin({ values: { sample: size, seed = String(newSeed()) }, positionals }) {
    if (!/^[1-9]\d*$/.test(size)) throw new Refused(`--sample ${size}: not a number of changes`);
    if (!/^\d+$/.test(seed)) throw new Refused(`--seed ${seed}: not a seed`);
    if (positionals.length === 0) throw new Refused("PATH expected, as in src/ipam");
    const all = mutantsIn(positionals);
    if (all.length === 0) throw new Refused(`no source has ${positionals.join(" or ")} in its path`);
    seedWith(Number(seed));
    const chosen = sample(all, Number(size));
    console.log(`${chosen.length} of ${all.length} changes, --seed ${seed}`);
    return () => tryAll(chosen);
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
