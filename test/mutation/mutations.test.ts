/** The changes that mutants are made by. */
import { expect, test } from "bun:test";
import { mutated, mutationsOf } from "./mutations.ts";

const changed = (source: string) => mutationsOf(source).map((one) => mutated(source, one)).sort();

test.each([
  ["conditions", "const a = x === y && z < b;", [
    "const a = x !== y && z < b;",
    "const a = x === y && z <= b;",
    "const a = x === y || z < b;",
    "const a = z < b;",
    "const a = x === y;",
  ]],
  ["sides of a condition", "const a = f((x) => x(g(h())) && !y?.[z] || w);", [
    "const a = f((x) => x(g(h())) || !y?.[z] || w);",
    "const a = f((x) => x(g(h())) && y?.[z] || w);",
    "const a = f((x) => x(g(h())) && !y?.[z] && w);",
    "const a = f((x) => !y?.[z] || w);",
    "const a = f((x) => x(g(h())) || w);",
    "const a = f((x) => x(g(h())) && !y?.[z]);",
  ]],
  ["guards, and their conditions", "  if (f(a)) throw b;", ["  ;", "  throw b;"]],
  ["negations, not assertions", "const a = !b, c = d!;", ["const a = b, c = d!;"]],
  ["order", "const a = b ? c : d;", ["const a = b ? d : c;"]],
  ["returns", "function f() {\n  return a;\n}", ["function f() {\n  return undefined;\n}"]],
  ["what is a change", "function f() {\n  return undefined;\n}", []],
  ["calls left out", "  f(a, g());\n  const b = g();", ["  ;\n  const b = g();"]],
  ["constants", "const a = true, b = 7;", ["const a = false, b = 7;", "const a = true, b = 8;"]],
  ["joined texts stay", 'const a = "one" + two;', []],
  ["texts and comments stay", 'const a = "x === 1"; // y && 2\n/* 3 */', []],
  ["what a text computes stays with it", "const a = `${b + 1}`;", []],
  ["the end of a type that is a text stays", 'function f(): A<"b"> {\n}', []],
  ["types and imports stay", 'import a from "a";\n\ninterface B {\n  c: 1;\n}\n\ntype D = 1 | true;\n', []],
  ["what takes several lines stays whole", "f(\n  a,\n);", []],
])("%s", (_, source, expected) => expect(changed(source)).toEqual([...expected].sort()));

test("a mutation names its line", () => {
  expect(mutationsOf("a;\nb;\nconst c = true;").map(({ line }) => line)).toEqual([3]);
});
