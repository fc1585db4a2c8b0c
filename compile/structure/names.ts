/**
 * A name is one thing's: no two files export types of one name, and no two export functions of one name. A function that a
 * file keeps to itself may have any name, because its readers have its meaning before them.
 */
import { roomOf, rooms } from "./rooms.ts";
import type { Source } from "./sources.ts";

/** Names that several files may export: the rooms of these files. */
const permitted: Readonly<Record<string, string>> = {
  // The library's are for programs, which have no other things of these names.
  Attachment: "contract frontends/library services/dhcp",
  Options: "frontends/library services/dhcp",
  PluginConfig: "contract frontends/library",
  PortMapping: "frontends/library resources",

  // One function, for nf_tables and for the older tables; host-tables.ts knows which of them the host has.
  changeTable: "interop/iptables interop/iptables interop/iptables",
  readTable: "interop/iptables interop/iptables interop/iptables",
  // One function, for IPv4 and for IPv6.
  decline: "services/dhcp services/dhcp",
  endOf: "services/dhcp services/dhcp",
  release: "services/dhcp services/dhcp",
  request: "services/dhcp services/dhcp",
  wrap: "services/dhcp services/dhcp",
};

const EXPORTED = {
  types: /^export (?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
  functions: /^export (?:function\*? (\w+)|const (\w+) = (?:\(.*\)(?:: .*)?|\w+) =>)/gm,
};

export function homonyms(sources: readonly Source[]): string[] {
  return [...homonymsAmong("types", sources), ...homonymsAmong("functions", sources)];
}

function homonymsAmong(what: keyof typeof EXPORTED, sources: readonly Source[]): string[] {
  const files = new Map<string, Set<string>>(), names = rooms.map((room) => room.name);
  for (const { path, text } of sources) {
    for (const [, ...found] of text.matchAll(EXPORTED[what])) {
      files.getOrInsertComputed(found.find((name) => name !== undefined)!, () => new Set()).add(path);
    }
  }
  return [...files].flatMap(([name, set]) => {
    const paths = [...set], listed = permitted[name];
    const found = paths.map((path) => roomOf(path.slice("src/".length), names)).sort().join(" ");
    if (listed === undefined) {
      return paths.length === 1 ? [] : [`${paths.join(", ")}: export ${what} of one name, ${name}`];
    }
    return found === listed
      ? []
      : [`compile/structure/names.ts: permits ${name} in ${listed}, and it is in ${found}`];
  });
}
