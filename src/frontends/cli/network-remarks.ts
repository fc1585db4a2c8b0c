/** What people are told of networks: by `patchbay networks` and `patchbay status`. */
import type { NetworkSummary } from "../../contract/summaries.ts";
import { exists } from "../../ffi/files.ts";
import { misnamedFiles } from "../../runtime/conf/directory.ts";

/** In lines. */
export function noneIn(configDirectory: string): string {
  const step = "it does not exist; --config-dir or $NETCONFPATH names another directory";
  return `no networks in ${configDirectory}\n${exists(configDirectory) ? "" : `  ${step}\n`}`;
}

/** In lines: files that nobody reads. */
export function misnamedIn(configDirectory: string): string {
  return misnamedFiles(configDirectory)
    .map(({ path, meant }) => `${path} is not read; did you mean "${meant}" at its end?\n`).join("");
}

/** What ADD works in spite of. */
export function remarksOn({ name, differences, warnings }: NetworkSummary<unknown>): string[] {
  return [...differences.map((line) => `${line}; 'patchbay repair ${name}' mends it`), ...warnings];
}
