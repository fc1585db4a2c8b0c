/** Reads the sources for the structure check: text, code, imports. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

export interface Source {
  path: string;
  text: string;
  /** Without types and comments. */
  code: string;
  /** All imports including types, resolved to `src/…` where they are ours. */
  imports: string[];
  /** Imports that are loaded with the file. */
  loads: string[];
  /** Imports that a function loads lazily. */
  loadsLater: string[];
}

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

export function readSource(root: string, path: string): Source {
  const text = readFileSync(join(root, path), "utf8");
  const target = (specifier: string) =>
    specifier.startsWith(".") ? relative(root, resolve(root, dirname(path), specifier)) : specifier;
  const scanned = transpiler.scanImports(text);
  const loads = scanned.filter((one) => one.kind === "import-statement").map((one) => target(one.path));
  const loadsLater = scanned.filter((one) => one.kind !== "import-statement").map((one) => target(one.path));
  // Statements start at the beginning of a line; text in templates does not in these sources.
  const statements = [...text.matchAll(/^(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"/gm)].map((match) =>
    target(match[1]!)
  );
  return {
    path,
    text,
    code: transpiler.transformSync(text),
    imports: [...new Set([...statements, ...loads, ...loadsLater])],
    loads,
    loadsLater,
  };
}

export function filesBelow(root: string, folder: string, ending = /\.ts$/): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name))).sort();
}
