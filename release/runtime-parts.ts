/**
 * What is inside of the program besides our own code: Bun, and what is linked into it. runtime-parts.json has a row for each:
 * what Bun's page of licences names, `process.versions`, the dependencies of its build, and its crates. The tests compare the rows
 * with `process.versions` alone, which names few of them; the others are compared by hand when a new Bun is taken
 * (CONTRIBUTING.md, "Take a new Bun").
 */
import rows from "./runtime-parts.json";

export interface Part {
  name: string;
  version: string;
  /** An SPDX expression. */
  licence: string;
  /** Files of release/licences, without `.txt`: for an expression with OR, the texts of the licence that we chose. */
  texts: string[];
  /** Where the texts do not say it. */
  copyright: string[];
  /** Where its sources are. */
  source: string;
  /** A package URL, where one is defined for such a source. */
  purl?: string;
}

interface Row extends Pick<Part, "name" | "licence" | "texts" | "source"> {
  /** Its name in `process.versions`. Bun does not say the version of parts without one. */
  version?: string;
  copyright?: string[];
}

/** Names of interfaces and formats that Bun says it has, of Bun itself, and of what it was compiled with. */
export const notLinked = ["bun", "modules", "napi", "node", "openssl", "unicode", "v8", "zig"];

const groups: Record<keyof typeof rows, { title: string; purl(row: Row): string | undefined }> = {
  libraries: { title: "Libraries, and what Bun has from other programs", purl: purlOfRepository },
  crates: { title: "Crates of Rust", purl: ({ name }) => `pkg:cargo/${name}` },
  modules: { title: "Modules that Bun puts into programs for browsers", purl: ({ name }) => `pkg:npm/${name}` },
};

const bun: Part = {
  name: "bun",
  version: Bun.version,
  licence: "MIT",
  texts: ["MIT"],
  copyright: ["Oven, and the other authors of Bun. Its sources name no holder of the copyright."],
  source: "https://github.com/oven-sh/bun",
  purl: `pkg:npm/bun@${Bun.version}`,
};

/** Bun's is the first. */
export function groupedParts(): { title: string; parts: Part[] }[] {
  const others = (Object.keys(groups) as (keyof typeof rows)[]).map((group) => {
    const { title, purl } = groups[group];
    return { title, parts: (rows[group] as Row[]).map((row) => partOf(row, purl(row))) };
  });
  return [{ title: "Bun", parts: [bun] }, ...others];
}

export function runtimeParts(): Part[] {
  return groupedParts().flatMap(({ parts }) => parts);
}

export const versionedLibraries = (rows.libraries as Row[]).flatMap(({ version }) => version ?? []);

function partOf({ name, version, licence, texts, copyright = [], source }: Row, purl: string | undefined): Part {
  const said = version === undefined ? `as in bun ${Bun.version}` : process.versions[version]!;
  return { name, version: said, licence, texts, copyright, source, ...purl === undefined ? {} : { purl } };
}

function purlOfRepository({ version, source }: Row): string | undefined {
  const found = /^https:\/\/github\.com\/([^/]+\/[^/]+)(?:\/tree\/main\/(.+))?$/.exec(source);
  if (version === undefined || found === null) return undefined;
  const [, repository, folder] = found;
  return `pkg:github/${repository!.toLowerCase()}@${process.versions[version]}${folder ? `#${folder}` : ""}`;
}
