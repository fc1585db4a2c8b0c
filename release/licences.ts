/** What others wrote of the program, and under which licence: docs for people, and the list for an SBOM. */
import type { Entry } from "./files.ts";
import { runtimeParts } from "./runtime-parts.ts";

/** The texts that the licences of the parts ask to be passed on. */
export function licenceEntries(folder: string): Entry[] {
  return [{ path: `${folder}THIRD-PARTY.md`, text: thirdParties() }];
}

function thirdParties(): string {
  const rows = runtimeParts().map(({ name, version, licence, source }) =>
    `- ${name} ${version}: ${licence}, ${source}`
  );
  return `# What others wrote

The program contains Patchbay (LICENSE), and Bun with the libraries that are linked into it. Bun's executable is used as it
is published on npm; nothing of it was changed but for its entry, which Patchbay's own first code replaces.

JavaScriptCore and tinycc are under the LGPL: whoever wants to change them builds Bun with the changed library, as Bun's
LICENSE.md says, and then Patchbay with that Bun (\`npm run build\`). Patchbay's sources are complete.

${rows.join("\n")}
`;
}
