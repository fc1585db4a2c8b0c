/**
 * `npm run test:mutants -- PATH…`: how much of what could go wrong the tests notice. Takes a sample of one-line changes of
 * the sources with PATH in their path, puts each into a copy of this checkout, and runs the nearest tests of those that
 * `npm test -- --for` names for its file. A change that the type checker refuses is not in the sample. Lists what
 * survives. Ends with the line `N noticed, N survived`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { root, unitTests } from "../runner/test-files.ts";
import { testsFor } from "../runner/tests-for.ts";
import { newSeed, seedWith, shuffled } from "../support/random.ts";
import { mutated, type Mutation, mutationsOf } from "./mutations.ts";
import { type Copy, describe, inCopy, spoiled, tryChange } from "./trial.ts";

interface Mutant {
  file: string;
  mutation: Mutation;
  /** The place and the line as it becomes. */
  what: string;
}

/** A change to try. What is edited here meanwhile does not matter. */
interface Task extends Mutant {
  tests: readonly string[];
  /** So many further test files may notice it. */
  leftOut: number;
}

interface Trial {
  what: string;
  end: Awaited<ReturnType<typeof tryChange>>;
}

/** Generated files follow from others, and the skeletons of plugins are in no program. */
function mutantsIn(paths: readonly string[]): Mutant[] {
  const files = [...new Bun.Glob("src/**/*.ts").scanSync(root)].sort()
    .filter((file) => paths.some((path) => file.includes(path)))
    .filter((file) => !/\.gen\.ts$|\.schema\.ts$|\/skeleton\//.test(file));
  return files.flatMap((file) => {
    const source = readFileSync(join(root, file), "utf8");
    return mutationsOf(source).map((mutation) => {
      const line = mutated(source, mutation).split("\n")[mutation.line - 1]!.trim();
      return { file, mutation, what: `${file}:${mutation.line}: ${line}` };
    });
  });
}

/** The first ones that the type checker lets pass: of what it refuses, everybody hears before any test runs. */
async function sample(mutants: readonly Mutant[], size: number): Promise<Mutant[]> {
  return await inCopy((copy) => {
    const refuses = typeChecker(copy);
    if (refuses()) throw new Error("the type checker refuses the unchanged sources");
    const chosen: Mutant[] = [];
    for (const mutant of mutants) {
      if (chosen.length === size) break;
      const path = join(copy.directory, mutant.file), text = readFileSync(path, "utf8");
      writeFileSync(path, mutated(text, mutant.mutation));
      if (keepsTypes(mutant) || !refuses()) chosen.push(mutant);
      writeFileSync(path, text);
    }
    return chosen;
  });
}

/** Whether the type checker need not look: another number, sum or order of numbers. */
function keepsTypes({ mutation: { text } }: Mutant): boolean {
  return /^\d+$|^ ([<>]=?|[-+]) $/.test(text);
}

/** Looks at the sources alone, and again only at what has changed. What is not used any more is no mistake of types. */
function typeChecker({ directory }: Copy): () => boolean {
  const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, allowUnreachableCode: true };
  const configuration = { extends: "./tsconfig.json", include: ["src", "types"], compilerOptions };
  writeFileSync(join(directory, "sources.json"), JSON.stringify(configuration));
  const tsc = join(root, "node_modules/.bin/tsc");
  const command = [tsc, "-p", "sources.json", "--incremental", "--tsBuildInfoFile", "sources.tsbuildinfo"];
  return () => Bun.spawnSync(command, { cwd: directory }).exitCode !== 0;
}

const units = new Set(unitTests());

function withTests(mutant: Mutant, limit: number): Task {
  const all = testsFor(mutant.file), heavy = all.filter((test) => !units.has(test));
  const tests = [...all.filter((test) => units.has(test)), ...heavy.slice(0, limit)];
  return { ...mutant, tests, leftOut: all.length - tests.length };
}

async function tryOne(copy: Copy, { file, mutation, what, tests, leftOut }: Task): Promise<Trial> {
  const since = performance.now();
  const end = await tryChange(copy, file, (text) => mutated(text, mutation), { tests });
  const seconds = `${Math.round((performance.now() - since) / 1000)} s`.padStart(5);
  const others = leftOut > 0 ? `, ${leftOut} further test files not run` : "";
  const word = typeof end !== "string" ? "noticed " : end === "no test notices" ? "SURVIVED" : "the same";
  console.log(`${seconds} ${word} ${what}`);
  console.log(`               ${typeof end === "string" ? `${end}${others}` : `by ${describe(end)}`}`);
  return { what, end };
}

/** What is noticed by tests that fail without it is not noticed. */
async function tryAll(tasks: readonly Task[], jobs: number): Promise<Trial[]> {
  const waiting = [...tasks];
  const trials = await Promise.all(Array.from({ length: jobs }, () =>
    inCopy(async (copy) => {
      const own: Trial[] = [];
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        own.push(await tryOne(copy, next));
      }
      const failing = (await spoiled(copy, own.map(({ end }) => end).filter((end) => typeof end !== "string")))
        .map(describe);
      for (const one of failing) console.log(`FAILED without any change: ${one}`);
      return own.map(({ what, end }): Trial => ({
        what,
        end: typeof end !== "string" && failing.includes(describe(end)) ? "no test notices" : end,
      }));
    })));
  return trials.flat();
}

/** Returns the exit status. */
function report(trials: readonly Trial[]): number {
  const list = (title: string, wanted: Trial["end"]) => {
    const found = trials.filter(({ end }) => end === wanted).map(({ what }) => what).sort();
    if (found.length > 0) console.log(`\n${title}\n${found.join("\n")}`);
    return found.length;
  };
  const same = list("Not counted, because the program stays the same:", "the program stays the same");
  const survived = list("Survived:", "no test notices");
  console.log(`\n${trials.length - same - survived} noticed, ${survived} survived`);
  return survived === 0 ? 0 : 1;
}

function readNumber(option: string, text: string, least = 1): number {
  if (!/^\d+$/.test(text) || Number(text) < least) {
    throw new Refused(`--${option} ${text}: not a number from ${least}`);
  }
  return Number(text);
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
    tests: {
      type: "string",
      default: "12",
      value: "N",
      about: "the nearest test files besides unit tests; with 0 it does not build (12)",
    },
    jobs: { type: "string", value: "N", about: "so many changes at a time (as many as there are processors)" },
  },
  needs: "all",
  begin({ values, positionals }) {
    const { seed = String(newSeed()), jobs = String(availableParallelism()) } = values;
    const size = readNumber("sample", values.sample), limit = readNumber("tests", values.tests, 0);
    const copies = readNumber("jobs", jobs);
    if (!/^\d+$/.test(seed)) throw new Refused(`--seed ${seed}: not a seed`);
    if (positionals.length === 0) throw new Refused("PATH expected, as in src/ipam");
    const all = mutantsIn(positionals);
    if (all.length === 0) throw new Refused(`no source has ${positionals.join(" or ")} in its path`);
    return async () => {
      seedWith(Number(seed));
      const chosen = await sample(shuffled(all), size);
      console.log(`${chosen.length} of ${all.length} changes, --seed ${seed}`);
      const tasks = chosen.map((mutant) => withTests(mutant, limit));
      return report(await tryAll(tasks, copies));
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
