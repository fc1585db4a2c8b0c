/** Makes all files of a release in dist/release: `npm run release`. The same sources give the same bytes. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import architectures from "../compile/architectures.json";
import { Refused } from "../compile/arguments.mjs";
import { setUp } from "../compile/setup.mjs";
import { defineTool, runTool } from "../compile/tool.ts";
import { makeArchive } from "./archive.ts";
import { makeCniPackage, makeOptCniPackage, makeProgramPackage } from "./debian-packages.ts";
import { makeCniRpm, makeOptCniRpm, makeProgramRpm } from "./rpm-packages.ts";
import { type Edition, readEdition, root } from "./edition.ts";
import { provenance } from "./provenance.ts";
import { billOfMaterials } from "./sbom.ts";
import { digestsIn, sign, writeSums } from "./sums.ts";

type Architecture = keyof typeof architectures;

/** As Debian and RPM call them. Their distributions have glibc. */
const packaged: Partial<Record<Architecture, { debian: string; rpm: string }>> = {
  x64: { debian: "amd64", rpm: "x86_64" },
  arm64: { debian: "arm64", rpm: "aarch64" },
};

function programOf(architecture: Architecture): string {
  return join(root, architectures[architecture].out, "patchbay");
}

/** Answers the names of the files, in the order in which they were made. */
export function makeRelease(edition: Edition, out: string, key?: string): string[] {
  const work = join(out, ".work"), made: string[] = [];
  rmSync(out, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const tell = (path: string) => void made.push(basename(path));
  for (const architecture of Object.keys(architectures) as Architecture[]) {
    const program = programOf(architecture), names = packaged[architecture];
    tell(makeArchive(program, architecture, edition, work, out));
    if (names === undefined) continue;
    tell(makeProgramPackage(program, names.debian, edition, work, out));
    tell(makeProgramRpm(program, names.rpm, edition, work, out));
  }
  tell(makeCniPackage(edition, work, out));
  tell(makeOptCniPackage(edition, work, out));
  tell(makeCniRpm(edition, work, out));
  tell(makeOptCniRpm(edition, work, out));
  rmSync(work, { recursive: true });
  const write = (name: string, text: string) => {
    writeFileSync(join(out, name), text);
    tell(name);
  };
  write(`patchbay-${edition.version}.cdx.json`, billOfMaterials(edition));
  write(`patchbay-${edition.version}.intoto.json`, provenance(edition, digestsIn(out)));
  writeSums(out);
  if (key !== undefined) sign(out, key);
  return made;
}

export const tool = defineTool({
  name: "release",
  about: "Makes the archives and packages of a release in dist/release (docs/release.md).",
  options: {
    key: { type: "string", value: "FILE", about: "signs the digests with this key of ssh-keygen" },
  },
  needs: "all",
  begin({ values: { key } }) {
    if (key !== undefined && !existsSync(key)) throw new Refused(`--key ${key}: there is no such file`);
    const edition = readEdition(), out = join(root, "dist/release");
    return async () => {
      for (const architecture of Object.keys(architectures)) {
        if (!existsSync(programOf(architecture as Architecture)) || architecture !== "x64") {
          await setUp("build", architecture);
        }
      }
      for (const name of makeRelease(edition, out, key)) console.log(name);
      console.log(`${out}${key === undefined ? ": not signed, --key says with what" : ": signed"}`);
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
