/** Packages of two versions, made of two builds: what tests of upgrades and downgrades install. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Making, readEdition } from "../../release/edition.ts";
import { type LinksPackage, linksPackages } from "../../release/packages.ts";
import { writeOtherBuild } from "./other-build.ts";
import { PATCHBAY } from "./plugins.ts";

const OLDER = "0.1.99";
export const NEWER = "0.2.99";

/** The program, the links in the distribution's directory of plugins, those in /opt/cni/bin. */
export type Packages = [program: string, links: string, opt: string];

export interface PackageVersions extends Disposable {
  older: Packages;
  newer: Packages;
}

interface Makers {
  architecture: string;
  makeProgram(program: string, architecture: string, making: Making): string;
  makeLinks(links: LinksPackage, making: Making): string;
}

export function makePackageVersions({ architecture, makeProgram, makeLinks }: Makers): PackageVersions {
  const directory = mkdtempSync(join(tmpdir(), "packages-"));
  const make = (program: string, packageVersion: string): Packages => {
    const edition = { ...readEdition(), packageVersion };
    const making = { edition, work: join(directory, "work"), out: join(directory, packageVersion) };
    for (const folder of [making.work, making.out]) mkdirSync(folder, { recursive: true });
    const links = linksPackages.map((each) => makeLinks(each, making)) as [string, string];
    return [makeProgram(program, architecture, making), ...links];
  };
  return {
    older: make(writeOtherBuild(join(directory, "older"), 7), OLDER),
    newer: make(PATCHBAY, NEWER),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}
