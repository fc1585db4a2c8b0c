/**
 * Makes the npm package, `dist/package` and a file of it: `npm run package`. What is C in it is compiled here, so who
 * installs it needs no compiler; and it is given the build of the program from the same sources, to know it among
 * plugins (src/frontends/library/in-process.ts). Needs no network.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { buildOf } from "../src/engine/build.ts";
import manifest from "../package.json";
import { nativePrograms } from "./build.ts";
import { defineTool, root, runTool } from "./tool.ts";

const architecture = "x64";
const bunVersion = manifest.devDependencies.bun;

/** Returns the path of the file that npm installs. */
export function makePackage(program: string, out: string): string {
  const folder = join(out, "package");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  bundle(folder, Buffer.from(buildOf(program)).toString("hex"));
  writeTypes(join(folder, "types"));
  writeFileSync(join(folder, "index.js"), 'import "./needs-bun.js";\nexport * from "./patchbay.js";\n');
  writeFileSync(join(folder, "needs-bun.js"), needsBun(bunVersion));
  // What the thread of src/frontends/library/thread.ts begins with.
  writeFileSync(join(folder, "thread.js"), 'import { serveThread } from "./patchbay.js";\nserveThread();\n');
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(packageManifest(), null, 2)}\n`);
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  mkdirSync(join(folder, "examples"));
  copyFileSync(join(root, "examples/launcher.ts"), join(folder, "examples/launcher.ts"));
  writeFileSync(join(folder, "README.md"), withoutLinks(readFileSync(join(root, "docs/library.md"), "utf8")));
  const { filename } = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", out], folder))[0];
  return join(out, filename);
}

/** Nobody publishes it yet; that it is private does not keep npm from packing and installing it. */
function packageManifest() {
  const { name, version, description, license } = manifest;
  return {
    name,
    version,
    description,
    license,
    private: true,
    type: "module",
    os: ["linux"],
    cpu: [architecture],
    engines: { bun: `>=${bunVersion}` },
    exports: { ".": { types: "./types/frontends/library/patchbay.d.ts", default: "./index.js" } },
    types: "./types/frontends/library/patchbay.d.ts",
    files: ["index.js", "needs-bun.js", "patchbay.js", "patchbay.js.map", "thread.js", "types", "examples"],
  };
}

/** The module that is evaluated first: other runtimes would fail with an error that says nothing of Bun. */
function needsBun(version: string): string {
  return `const found = globalThis.Bun?.version;
if (found === undefined || found.localeCompare("${version}", "en", { numeric: true }) < 0) {
  const runtime = found !== undefined ? \`Bun \${found}\` : globalThis.process ? \`Node.js \${process.version}\` : "not Bun";
  throw new Error(\`patchbay needs Bun ≥ ${version}; this is \${runtime}\`);
}
`;
}

/** The pages that it links to are not in the package. */
function withoutLinks(page: string): string {
  return page.replaceAll(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, "$1");
}

function bundle(folder: string, build: string): void {
  const options = ["--target=bun", "--format=esm", "--minify-syntax", "--reject-unresolved"];
  const constants = [...nativePrograms(architecture), `--define=PROGRAM_BUILD="${build}"`];
  const out = ["--sourcemap=linked", `--outdir=${folder}`, "--entry-naming=patchbay.js"];
  run(process.execPath, ["build", ...options, ...constants, ...out, "src/frontends/library/bundled.ts"], root);
  const code = join(folder, "patchbay.js"), map = `${code}.map`;
  writeFileSync(code, readFileSync(code, "utf8").replace(/^\/\/# debugId=.*\n/m, ""));
  writeFileSync(map, withoutMachine(readFileSync(map, "utf8"), folder));
}

/**
 * The source map with paths from the root, wherever the package is made, and without the sources' texts, three quarters
 * of its size. Bun wants a place for each text.
 */
function withoutMachine(map: string, folder: string): string {
  const { version, sources, names, mappings } = JSON.parse(map);
  const paths = sources.map((path: string) => relative(root, resolve(folder, path)));
  return JSON.stringify({ version, sources: paths, sourcesContent: paths.map(() => null), names, mappings });
}

/** The declarations that the package's own needs, each beside the others as the sources are. */
function writeTypes(folder: string): void {
  const temporary = join(folder, ".all"), settings = join(temporary, "tsconfig.json");
  mkdirSync(temporary, { recursive: true });
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    stripInternal: true,
    rootDir: root,
    outDir: join(temporary, "out"),
    types: ["bun", join(root, "types/typed-require")],
    typeRoots: [join(root, "node_modules/@types")],
  };
  const files = [join(root, "src/frontends/library/patchbay.ts")];
  const text = { extends: join(root, "tsconfig.json"), include: [], files, compilerOptions };
  writeFileSync(settings, JSON.stringify(text));
  run(join(root, "node_modules/.bin/tsc"), ["-p", settings], root);
  const copied = new Set<string>();
  const copy = (path: string) => {
    if (copied.has(path)) return;
    copied.add(path);
    const declared = readFileSync(join(temporary, "out/src", path), "utf8");
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), declared.replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
    for (const { 1: other } of declared.matchAll(/from "(\.[^"]*)\.ts"/g)) copy(join(dirname(path), `${other}.d.ts`));
  };
  copy("frontends/library/patchbay.d.ts");
  rmSync(temporary, { recursive: true });
}

function run(command: string, words: string[], cwd: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([command, ...words], { cwd, stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command} ${words[0]} failed:\n${stderr}${stdout}`);
  return stdout.toString();
}

export const tool = defineTool({
  name: "package",
  about: "Makes the npm package, dist/package, and a file of it that npm and Bun install.",
  needs: "all",
  begin: () => () => console.log(`packed ${makePackage(join(root, "dist/patchbay"), join(root, "dist"))}`),
});

if (import.meta.main) process.exitCode = await runTool(tool);
