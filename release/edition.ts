/** Which release this is: what every file of it says in the same words. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import manifest from "../package.json";
import { Refused } from "../compile/arguments.mjs";
import { output } from "./run.ts";

export const root = resolve(import.meta.dir, "..");

export interface Edition {
  version: string;
  /** The version as Debian and RPM order it: 0.2.0~rc.1 is before 0.2.0. */
  packageVersion: string;
  /** In seconds: the time of every file. Two builds of the same sources have the same. */
  epoch: number;
  /** The sources' commit; with `-dirty` behind it, they have been changed since. */
  commit: string;
  isChanged: boolean;
  maintainer: string;
}

/** What each file of a release is made with. */
export interface Making {
  edition: Edition;
  /** A folder for what is made on the way. */
  work: string;
  /** The folder of the release. */
  out: string;
}

export function readEdition(): Edition {
  const commit = output(["git", "rev-parse", "HEAD"], root).trim();
  const isChanged = output(["git", "status", "--porcelain", "--untracked-files=normal"], root).trim() !== "";
  return {
    version: manifest.version,
    packageVersion: manifest.version.replaceAll("-", "~"),
    epoch: readEpoch(),
    commit: isChanged ? `${commit}-dirty` : commit,
    isChanged,
    maintainer: readMaintainer(),
  };
}

/** As reproducible-builds.org says it; otherwise the commit's own. */
function readEpoch(): number {
  const said = process.env.SOURCE_DATE_EPOCH ?? output(["git", "log", "-1", "--format=%ct"], root).trim();
  // RPM has 32 bits for it.
  if (!/^\d{1,10}$/.test(said) || Number(said) > 0xffffffff) {
    throw new Refused(`SOURCE_DATE_EPOCH=${said} is not a number of seconds since 1970, until 2106`);
  }
  return Number(said);
}

/** In the variables that Debian's tools read. */
function readMaintainer(): string {
  const { DEBFULLNAME = "Patchbay maintainers", DEBEMAIL = "maintainers@patchbay.invalid" } = process.env;
  if (!/^[^<>%\p{C}]+$/u.test(DEBFULLNAME) || !/^[\w.+-]+@[\w.-]+$/.test(DEBEMAIL)) {
    throw new Refused(`DEBFULLNAME="${DEBFULLNAME}" DEBEMAIL="${DEBEMAIL}": a name and a mail address expected`);
  }
  return `${DEBFULLNAME} <${DEBEMAIL}>`;
}

/** What the version brings, from CHANGELOG.md. */
export function changesOf(version: string): string {
  const text = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const sections = text.split(/^## /m).slice(1);
  const section = sections.find((one) => /^\S+/.exec(one)?.[0].replace(/,$/, "") === version);
  if (section === undefined) {
    throw new Refused(
      `CHANGELOG.md has no section for ${version}: give the one of what is not released yet this name`,
    );
  }
  return section.slice(section.indexOf("\n") + 1).trim();
}
