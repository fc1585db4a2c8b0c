/**
 * Makes all files of a release in dist/release: `npm run release`. The same sources give the same bytes, with the same tools,
 * and the same C library in the image.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { type Architecture, architectureNames, architectures } from "../compile/architectures.ts";
import { Refused } from "../compile/arguments.mjs";
import { DEFAULT_ARCHITECTURE, setUp } from "../compile/setup.mjs";
import { defineTool, runTool } from "../compile/tool.ts";
import { makeArchive } from "./archive.ts";
import { makeLinksPackage, makeProgramPackage } from "./debian-packages.ts";
import { type Edition, readEdition, root } from "./edition.ts";
import { imageContents, makeImage } from "./image/image.ts";
import { linksPackages } from "./packages.ts";
import { provenance } from "./provenance.ts";
import { makeLinksRpm, makeProgramRpm } from "./rpm-packages.ts";
import { billOfMaterials } from "./sbom.ts";
import { digestsIn, sign, writeSums } from "./sums.ts";

function programOf(architecture: Architecture): string {
  return join(root, architectures[architecture].out, "patchbay");
}

/** Returns the names of the files, in the order in which they were made. What was in `out` stays until all of them are there. */
export function makeRelease(edition: Edition, out: string, key?: string): string[] {
  removeUnfinished(out);
  const fresh = `${out}.new-${process.pid}`;
  try {
    const names = makeFiles(edition, fresh, key);
    rmSync(out, { recursive: true, force: true });
    renameSync(fresh, out);
    return names;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** What releases have left that a signal ended. Throws while another process makes one: the later would take the other's place. */
function removeUnfinished(out: string): void {
  for (const name of readdirSync(dirname(out))) {
    const [, pid] = name.startsWith(basename(out)) ? /\.new-(\d+)$/.exec(name) ?? [] : [];
    if (pid === undefined) continue;
    if (existsSync(`/proc/${pid}`)) throw new Refused(`process ${pid} makes a release: wait for it, or end it`);
    rmSync(join(dirname(out), name), { recursive: true });
  }
}

function makeFiles(edition: Edition, fresh: string, key?: string): string[] {
  const work = join(fresh, ".work"), names: string[] = [];
  const making = { edition, work, out: fresh };
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const tell = (path: string) => void names.push(basename(path));
  for (const architecture of architectureNames) {
    const program = programOf(architecture), { distributions } = architectures[architecture];
    tell(makeArchive(program, architecture, making));
    if (distributions === undefined) continue;
    tell(makeProgramPackage(program, distributions.debian, making));
    tell(makeProgramRpm(program, distributions.rpm, making));
  }
  for (const links of linksPackages) {
    tell(makeLinksPackage(links, making));
    tell(makeLinksRpm(links, making));
  }
  const contents = imageContents(programOf);
  tell(makeImage({ contents, version: edition.version, epoch: edition.epoch, out: fresh }));
  rmSync(work, { recursive: true });
  const write = (name: string, text: string) => {
    writeFileSync(join(fresh, name), text);
    tell(name);
  };
  const ofImage = contents.map(({ library }) => library);
  write(`patchbay-${edition.version}.cdx.json`, billOfMaterials(edition, ofImage));
  write(`patchbay-${edition.version}.intoto.json`, provenance(edition, digestsIn(fresh), ofImage));
  writeSums(fresh);
  if (key !== undefined) sign(fresh, key);
  return names;
}

/** docs/versions.md promises that later versions read them. Afterwards nobody can be sure what this one wrote. */
function requireStores({ version }: Edition): void {
  const folder = `test/release/stores-of-${version}`;
  if (existsSync(join(root, folder))) return;
  throw new Refused(
    `${folder} is missing, by which later versions are tested: record it, with what is released ` +
      "(npx bun test --timeout=300000 ./test/release/record-stores.ts), and commit it",
  );
}

/** Tries the key before the files are made, which takes minutes. */
function requireKey(key: string, { commit, isChanged }: Edition): void {
  // Nobody else would have the sources of what is signed.
  if (isChanged) {
    throw new Refused(`--key: the sources have changes (${commit}): commit them, put them aside, or leave --key out`);
  }
  if (!existsSync(key)) throw new Refused(`--key ${key}: there is no such file`);
  const folder = mkdtempSync(join(tmpdir(), "patchbay-key-"));
  try {
    writeSums(folder);
    sign(folder, key);
  } catch (error) {
    throw new Refused(`--key ${key} does not sign: ${(error as Error).message}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const tool = defineTool({
  name: "release",
  about: "Makes the archives and packages of a release in dist/release (docs/release.md).",
  options: {
    key: { type: "string", value: "FILE", about: "signs the digests with this key of ssh-keygen" },
  },
  needs: "all",
  begin({ values: { key } }) {
    const edition = readEdition(), out = join(root, "dist/release");
    requireStores(edition);
    if (key !== undefined) requireKey(resolve(key), edition);
    return async () => {
      for (const architecture of architectureNames) {
        // The default is built already, with what the tests need.
        if (architecture !== DEFAULT_ARCHITECTURE) await setUp("build", architecture);
      }
      for (const name of makeRelease(edition, out, key && resolve(key))) console.log(name);
      console.log(`${out}${key === undefined ? ": not signed, --key says with what" : ": signed"}`);
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
