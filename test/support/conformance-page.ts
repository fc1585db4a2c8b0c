/** What docs/conformance.md says of Debian's plugins. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const page = readFileSync(resolve(import.meta.dir, "../../docs/conformance.md"), "utf8");
const HEADING = "\n## What Debian's Go plugins do not meet\n";

export interface KnownFailure {
  demand: string;
  /** Undefined: of every plugin. */
  plugins: string[] | undefined;
  reason: string;
}

/** In the order of the page. An item of its list: the demand, plugins, and why. */
export function everyKnownFailure(): KnownFailure[] {
  const section = page.split(HEADING)[1];
  if (section === undefined) throw new Error(`docs/conformance.md has no heading ${HEADING.trim()}`);
  const list = section.split(/\n##/)[0]!.replace(/\n {2}/g, " ");
  return [...list.matchAll(/^- `([\w-]+)`: (every plugin|`[\w-]+`(?:, `[\w-]+`)*)\. (.*)$/gm)]
    .map(([, demand, plugins, reason]) => ({
      demand: demand!,
      plugins: plugins === "every plugin" ? undefined : [...plugins!.matchAll(/[\w-]+/g)].map(([name]) => name),
      reason: reason!,
    }));
}

/** What Debian's build of a plugin does not meet. */
export function knownFailures(plugin: string): string[] {
  return everyKnownFailure().filter(({ plugins }) => plugins?.includes(plugin) ?? true).map(({ demand }) => demand);
}
