/** A name is one thing's: no two files export types of the same name. */
import { roomOf, rooms } from "./rooms.ts";
import type { Source } from "./sources.ts";

/** Names that several files may export: the rooms of these files. */
const permitted: Readonly<Record<string, string>> = {
  // The library's are for programs, which have no other things of these names.
  Attachment: "contract frontends/library services/dhcp",
  Options: "frontends/library services/dhcp",
  PluginConfig: "contract frontends/library",
  PortMapping: "frontends/library resources",
};

export function homonyms(sources: readonly Source[]): string[] {
  const files = new Map<string, string[]>();
  for (const { path, text } of sources) {
    for (const [, name] of text.matchAll(/^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm)) {
      files.getOrInsertComputed(name!, () => []).push(path);
    }
  }
  return [...files].flatMap(([name, paths]) => {
    const names = rooms.map((room) => room.name), listed = permitted[name];
    const found = paths.map((path) => roomOf(path.slice("src/".length), names)).sort().join(" ");
    if (listed === undefined) {
      return paths.length === 1 ? [] : [`${paths.join(", ")}: export types of one name, ${name}`];
    }
    return found === listed
      ? []
      : [`compile/structure/names.ts: permits ${name} in ${listed}, and it is in ${found}`];
  });
}
