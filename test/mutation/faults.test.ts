/** The list of seeded faults matches the sources, and has what mutants do not try. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { faults, sources } from "./faults.ts";
import { mutated, mutationsOf } from "./mutations.ts";

const root = resolve(import.meta.dir, "../..");

test("each fault's text stands once in its file, and tests exist", () => {
  const wrong = faults.flatMap(({ file, find, replace }) => {
    const path = join(root, file);
    const times = existsSync(path) ? readFileSync(path, "utf8").split(find).length - 1 : 0;
    return [
      ...times === 1 ? [] : [`${file}: "${find}" stands there ${times} times`],
      ...find === replace ? [`${file}: "${find}" is no change`] : [],
    ];
  });
  const missing = sources.flatMap(({ tests }) => tests).filter((test) => !existsSync(join(root, test)));
  expect([...wrong, ...missing]).toEqual([]);
});

test("no fault is one that mutants have", () => {
  const withoutBlanks = (text: string) => text.replace(/^ *;$/gm, "").replace(/ +/g, " ").trim();
  const ofMutants = faults.filter(({ file, find, replace }) => {
    if (!/^src\/.*\.ts$/.test(file)) return false;
    const source = readFileSync(join(root, file), "utf8");
    const line = source.split(find)[0]!.split("\n").length;
    const changed = withoutBlanks(source.split(find).join(replace).split("\n")[line - 1]!);
    return mutationsOf(source).some((one) =>
      one.line === line && withoutBlanks(mutated(source, one).split("\n")[line - 1]!) === changed
    );
  });
  expect(ofMutants.map(({ file, find }) => `${file}: ${find}`)).toEqual([]);
});

test("the faults of a file stand beside each other", () => {
  const files = sources.map(({ file }) => file), runs = files.filter((file, index) => file !== files[index - 1]);
  expect(runs.filter((file, index) => runs.indexOf(file) !== index)).toEqual([]);
});
