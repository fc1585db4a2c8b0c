/** What others wrote of the program, and under which licences. */
import type { File } from "./files.ts";
import { runtimeParts } from "./runtime-parts.ts";

export function licenceEntries(folder: string): File[] {
  return [{ path: `${folder}THIRD-PARTY.md`, text: thirdParties() }];
}

export function thirdParties(): string {
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
