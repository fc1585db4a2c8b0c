/** The document of what others wrote: each part of the program with its licence, and the texts of the licences, word for word. */
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { architectureNames } from "../compile/architectures.ts";
import { bunExecutable } from "../compile/bun-executable.mjs";
import { DEFAULT_ARCHITECTURE } from "../compile/setup.mjs";
import manifest from "../package.json";
import { root } from "./edition.ts";
import type { File } from "./files.ts";
import { groupedParts, type Part, runtimeParts } from "./runtime-parts.ts";

export function licenceEntries(folder: string): File[] {
  return [{ path: `${folder}THIRD-PARTY.md`, text: thirdParties() }];
}

/** The licence of the program with all that is in it, as an SPDX expression. A choice is left out when one of its licences
 * is in the expression anyway. */
export function programLicence(): string {
  const terms = runtimeParts().flatMap(({ licence }) => termsOf(licence));
  const single = new Set([manifest.license, ...terms.flatMap((term) => term.length === 1 ? term : []).sort()]);
  const choices = terms.filter((term) => !term.some((one) => single.has(one))).map((term) =>
    `(${term.join(" OR ")})`
  );
  return [...single, ...new Set(choices)].join(" AND ");
}

/** `A AND (B OR C)` is `[[A], [B, C]]`: every term counts, and of a term one chooses a licence. */
export function termsOf(licence: string): string[][] {
  return licence.split(" AND ").map((term) => term.replace(/^\((.*)\)$/, "$1").split(" OR "));
}

export function textOf(name: string): string {
  return readFileSync(join(root, "release/licences", `${name}.txt`), "utf8");
}

export function thirdParties(): string {
  const groups = groupedParts().map(({ title, parts }) => `## ${title}\n\n${parts.map(rowOf).join("\n")}\n`);
  const names = [...new Set(runtimeParts().flatMap(({ texts }) => texts))].sort();
  const texts = names.map((name) => `## Text: ${name}\n\n\`\`\`\n${textOf(name).trimEnd()}\n\`\`\`\n`);
  const builds = architectureNames.filter((name) => name !== DEFAULT_ARCHITECTURE).map((name) =>
    `- ${name}: put it at \`${relative(root, bunExecutable(name))}\`; \`npm run build -- --arch ${name}\`.`
  );
  return `# What others wrote

The program contains Patchbay (Apache-2.0), and Bun with all that is linked into it. Bun's executable is used as it is
published on npm; nothing of it was changed but for its entry, which Patchbay's own first code replaces. Below is each
part with its version, its licence, the names of the texts that belong to it, and where its sources are. The texts follow.
Of a part with a choice of licences, the texts are those of the licence that Patchbay takes.

WebKit, with its JavaScriptCore, and tinycc are libraries under the LGPL. You may change them, and take the program apart to
find faults of your changes. Their sources are at the commits that are their versions here. Build Bun with the changed
library, as its LICENSE.md says (https://github.com/oven-sh/bun/blob/bun-v${Bun.version}/LICENSE.md). Put that Bun into a
checkout of Patchbay, as \`node_modules/bun/bin/bun.exe\`, and \`npm run build\` makes the program with it. For other
processors and C libraries:

${builds.join("\n")}

The container image has Debian's libc6 beside the program. What its /usr/share/doc/libc6/copyright says of the LGPL-2.1 is
the text of that name here.

Parts under the MPL-2.0 are unchanged by Patchbay; their sources are at the addresses that stand here.

This software is based in part on the work of the Independent JPEG Group.

${[...groups, ...texts].join("\n")}`;
}

function rowOf({ name, version, licence, texts, copyright, source }: Part): string {
  const first = `- ${name} ${version}: ${licence}. Text: ${texts.join(", ")}. ${source}`;
  return [first, ...copyright.map((line) => `  - ${line}`)].join("\n");
}
