/** The script of packages that asks the program before they are removed, with a program that says what it is told. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROGRAM, script } from "../../release/packages.ts";

const REFUSES = 3, FAILS = 127, ALLOWS = 0;

/** A directory of plugins. */
interface Place {
  answers: number;
  /** Links in it lead to the program. */
  isOurs?: boolean;
}

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "before-removal-"))));
afterAll(() => rmSync(directory, { recursive: true }));

let count = 0;

/** Runs a script that calls `before_removal` for the places. */
function asked(path: string, args: string[], places: readonly Place[], env: Record<string, string> = {}) {
  const root = join(directory, String(count++)), program = join(root, "program");
  const folders = places.map((_, index) => join(root, `place${index}`));
  mkdirSync(root);
  const cases = places.map(({ answers }, index) => `*/place${index}) exit ${answers} ;;\n`);
  writeFileSync(
    program,
    `#!/bin/sh\nwhile [ $# -gt 1 ]; do echo "$1"; shift; done\nprintf '%s\\n' 'a\\cb'\ncase $1 in\n${
      cases.join("")
    }esac\n`,
  );
  chmodSync(program, 0o755);
  for (const [index, folder] of folders.entries()) {
    mkdirSync(folder);
    if (places[index]!.isOurs) symlinkSync(program, join(folder, "bridge"));
  }
  const directories = folders.map((folder) => folder.slice(1));
  const text = script(path, { name: "patchbay-cni", directories, replaced: "containernetworking-plugins" })
    .replaceAll(`/${PROGRAM}`, program);
  return (["dash", "bash"] as const).map((shell) => {
    const { exitCode, stderr } = Bun.spawnSync([shell, "-c", text, "prerm", ...args], {
      env: { PATH: process.env.PATH!, ...env },
    });
    return { exitCode, said: stderr.toString() };
  });
}

const ofLinks = "release/debian/links.prerm", ofProgram = "release/debian/patchbay.prerm";
const held = { answers: REFUSES, isOurs: true }, foreign = { answers: ALLOWS };

test.each<[string, string, Place[], number]>([
  ["nothing is attached", ofLinks, [{ answers: ALLOWS, isOurs: true }], 0],
  ["something is", ofLinks, [held], 1],
  ["the program does not run", ofLinks, [{ answers: FAILS, isOurs: true }], 0],
  ["something is attached, and another place has plugins", ofProgram, [held, foreign], 1],
  ["the same in the other order", ofProgram, [foreign, held], 1],
  ["no links are left, and one place has plugins that remove it", ofProgram, [{ answers: REFUSES }, foreign], 0],
  ["no links are left, and no place has such plugins", ofProgram, [{ answers: REFUSES }, { answers: REFUSES }], 1],
  ["one refuses, and the next cannot be asked", ofProgram, [{ answers: REFUSES }, { answers: FAILS }], 1],
  ["one cannot be asked, and the next refuses", ofProgram, [{ answers: FAILS }, held], 1],
])("%s", (_, path, places, exitCode) => {
  for (const one of asked(path, ["remove"], places)) {
    expect(one).toEqual({ exitCode, said: expect.any(String) });
    // dash's echo would obey the backslash.
    if (exitCode !== 0) expect(one.said).toContain("a\\cb\npatchbay");
  }
});

test("values are taken as they are, and a mark without one is an error", () => {
  expect(script(ofLinks, { name: "$&", directories: ["$$"], replaced: "$`" })).toContain(
    'before_removal $& "$more" $$\n',
  );
  expect(() => script(ofLinks, { name: "patchbay-cni", directories: [] })).toThrow(
    `${ofLinks} has the mark @REPLACED@`,
  );
});

test("only Go's package, and the variable, say that Go's plugins come", () => {
  const isReplaced = (args: string[], env?: Record<string, string>) =>
    asked(ofLinks, args, [held], env).map(({ said }) => said.includes("--replaced\n"));
  expect(isReplaced(["remove"])).toEqual([false, false]);
  expect(isReplaced(["remove", "in-favour", "containernetworking-plugins", "1.0"])).toEqual([true, true]);
  expect(isReplaced(["remove", "in-favour", "something", "1.0"])).toEqual([false, false]);
  expect(isReplaced(["remove"], { PATCHBAY_REMOVE: "replaced" })).toEqual([true, true]);
});

test("removal by force, in another root, and for an upgrade is not asked about", () => {
  const exitCodes = (args: string[], env: Record<string, string>) =>
    asked(ofLinks, args, [held], env).map(({ exitCode }) => exitCode);
  expect(exitCodes(["remove"], { PATCHBAY_REMOVE: "force" })).toEqual([0, 0]);
  expect(exitCodes(["remove"], { DPKG_ROOT: "/run/root" })).toEqual([0, 0]);
  expect(exitCodes(["upgrade", "2.0"], {})).toEqual([0, 0]);
});
