/**
 * The oldest glibc that the program runs with is 2.17: nothing that it is linked with, and no function that the sources bind
 * by name, is newer. test/hosts/debian.test.ts runs it with an older and a newer glibc than this machine's.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { architectures } from "../../compile/architectures.ts";
import { needs } from "../support/needs.ts";
import { PATCHBAY } from "../support/plugins.ts";

needs("gcc");

const root = resolve(import.meta.dir, "../..");
const OLDEST = "2.17";
const LIBC = "libc.so.6";

/** Part of Debian's gcc; reads files for other processors, too. */
function readelf(...words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["readelf", "--wide", ...words]);
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
  return stdout.toString();
}

function isNewer(version: string, than: string): boolean {
  return Bun.semver.order(`${version}.0.0`.split(".").slice(0, 3).join("."), `${than}.0`) > 0;
}

const others = Object.values(architectures).map(({ out }) => join(root, out, "patchbay")).filter((path) =>
  path !== PATCHBAY && existsSync(path)
);

for (const program of [PATCHBAY, ...others]) {
  test(`is linked with nothing that is newer: ${program.replace(`${root}/`, "")}`, () => {
    const versions = [...readelf("--version-info", program).matchAll(/Name: GLIBC_(\S+)/g)].map(([, one]) => one!);
    if (readelf("--dynamic", program).includes("libc.musl")) {
      expect(versions).toEqual([]);
      return;
    }
    expect(versions).toContain("2.17");
    expect(versions.filter((one) => isNewer(one, OLDEST))).toEqual([]);
  });
}

/** The functions that the sources bind, by the library that they name: `bind({ … }, LIBDL)`. */
function boundFunctions(): { name: string; library: string; path: string }[] {
  const sources = new Bun.Glob("src/**/*.ts").scanSync({ cwd: root });
  return [...sources].flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const tables = [
      ...text.matchAll(/\bbind(?:Later)?\(\{([^]*?)\}(?:,\s*("\S+"|[A-Z]+))?,?\s*\)/g),
      ...[...text.matchAll(/\bdlopen\((LIBC), \{([^]*?)\}\)/g)].map(([all, library, rows]) => [all, rows, library]),
    ];
    return tables.flatMap(([, rows, library = "LIBC"]) =>
      [...rows!.matchAll(/(\w+): \{\s*args:/g)].map(([, name]) => ({ name: name!, library, path }))
    );
  });
}

test("every function that is bound has been in its library since, without falling back to a newer one", () => {
  const bound = boundFunctions();
  // A bound function that this regular expression does not see would not be judged.
  const rows = new Bun.Glob("src/**/*.ts").scanSync({ cwd: root });
  const seen = [...rows].flatMap((
    path,
  ) => [...readFileSync(join(root, path), "utf8").matchAll(/\w+: \{\s*args: \[/g)]);
  expect(bound).toHaveLength(seen.length);

  const library = ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"].map((one) => join(one, LIBC)).find(existsSync)!;
  const exported = [...readelf("--dyn-syms", library).matchAll(/ (\w+)(@@?)GLIBC_([\d.]+)$/gm)];
  const since = (name: string, isDefault: boolean) =>
    exported.filter((one) => one[1] === name && (one[2] === "@@" || !isDefault)).map((one) => one[3]!);
  const judged = bound.filter((one) => one.library !== '"libnl-3.so.200"').map((one) => {
    // Where glibc has moved a function from another library, its older version is what that library had.
    const versions = since(one.name, one.library === "LIBC");
    return { ...one, versions, isOld: versions.some((version) => !isNewer(version, OLDEST)) };
  });
  expect(judged.filter(({ isOld }) => !isOld)).toEqual([]);
  // Newer than that, so that the comparison above can fail.
  expect(since("statx", true)).toEqual(["2.28"]);
  expect([isNewer("2.28", OLDEST), isNewer("2.2.5", OLDEST), isNewer("2.17", OLDEST)]).toEqual([true, false, false]);
});
