/** The options of `npm run pod-start`: wrong ones are refused with their name, their value and what there is. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { podStart, wishOf } from "../../../bench/pod-start/options.ts";
import { readArguments } from "../../../compile/arguments.mjs";

const HERE = import.meta.dir;
const parse = (args: string[], root: string) => wishOf(readArguments(podStart, args)!, root);
/** A program that is there, and nothing to compare with. */
const given = ["--program", import.meta.path, "--theirs-cni", "none", "--theirs-netavark", "none"];

test("all engines and no limit, if nothing else is said", () => {
  expect(parse(given, HERE)).toMatchObject({
    engines: ["podman-cni", "podman-netavark", "containerd"],
    count: 20,
    theirs: { plugins: undefined, netavark: undefined },
    limits: { ratio: undefined, ms: undefined },
    out: undefined,
  });
  expect(parse([...given, "--engine", "containerd", "--limit-ms", "400.5"], HERE)).toMatchObject({
    engines: ["containerd"],
    limits: { ms: 400.5 },
  });
});

test("only what an engine replaces has to be there, and each engine runs once", () => {
  const args = ["--program", import.meta.path, "--theirs-netavark", import.meta.path, "--theirs-cni", "/nowhere"];
  const { engines, theirs } = parse([...args, "--engine", "podman-netavark,podman-netavark"], HERE);
  expect({ engines, theirs }).toEqual({
    engines: ["podman-netavark"],
    theirs: { plugins: undefined, netavark: { path: import.meta.path } },
  });
});

test("the example workflow calls it with options that it takes, and keeps the folder that it writes", () => {
  const file = resolve(HERE, "../../../examples/pod-start.yml");
  // deno-lint-ignore no-explicit-any
  const { steps } = (Bun.YAML.parse(readFileSync(file, "utf8")) as any).jobs["pod-start"];
  const call = steps.map(({ run = "" }) => /^npm run pod-start -- (.*)$/.exec(run)?.[1]).find(Boolean);
  const theirs = ["--theirs-netavark", import.meta.path];
  const { out, limits } = parse([
    ...call.split(" "),
    "--program",
    import.meta.path,
    "--engine",
    "podman-netavark",
    ...theirs,
  ], HERE);
  expect(limits.ratio).toBeGreaterThan(0);
  expect(resolve(steps.at(-1).with.path)).toBe(out!);
});

test.each([
  [["--engine", "docker"], "--engine docker: no such engine; there are podman-cni, podman-netavark, containerd"],
  [["--count", "0"], "--count 0: not a number of containers"],
  [["--count", "1.5"], "--count 1.5: not a number of containers"],
  [["--limit", "-1"], "argument is ambiguous"],
  [["--limit", "fast"], "--limit fast: not a number"],
  [["--limit-ms", "4e2"], "--limit-ms 4e2: not a number"],
  [["--limit", "1.2"], "--limit 1.2: podman-cni has nothing to be compared with; take --limit-ms"],
  [["--program", "/nowhere/patchbay"], "--program /nowhere/patchbay: it is not there"],
  [["--theirs-cni", "/nowhere"], "--theirs-cni /nowhere/bridge: it is not there"],
  [["--slow"], "Unknown option"],
])("%j", (args, text) => {
  expect(() => parse([...given, ...args], HERE)).toThrow(text);
});
