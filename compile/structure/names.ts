/** A name is one thing's: no two files export types of the same name. */
import type { Source } from "./sources.ts";

/** Names that several files may export: the rooms of these files. */
const permitted: Readonly<Record<string, string>> = {
  // The library's are for programs, which have no other things of these names.
  Attachment: "contract dhcp library",
  Options: "dhcp library",
  PluginConfig: "contract library",
  PortMapping: "library resources",
};

export function homonyms(sources: readonly Source[]): string[] {
  const files = new Map<string, string[]>();
  for (const { path, text } of sources) {
    for (const [, name] of text.matchAll(/^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm)) {
      files.getOrInsertComputed(name!, () => []).push(path);
    }
  }
  return [...files].flatMap(([name, paths]) => {
    const rooms = paths.map((path) => path.split("/")[1]).sort().join(" "), listed = permitted[name];
    if (listed === undefined) {
      return paths.length === 1 ? [] : [`${paths.join(", ")}: export types of one name, ${name}`];
    }
    return rooms === listed
      ? []
      : [`compile/structure/names.ts: permits ${name} in ${listed}, and it is in ${rooms}`];
  });
}
