/** The rooms of src, from top to bottom, as ARCHITECTURE.md draws them. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

export interface Room {
  /** A folder or a file of src. */
  name: string;
  /** Including types and lazy loading: rooms below it, single files of them, packages. */
  mayImport: readonly string[];
}

const PAGE = "ARCHITECTURE.md";
const [, picture] =
  /^```\n(main\.ts [^]*?)^```$/m.exec(readFileSync(resolve(import.meta.dir, "../..", PAGE), "utf8")) ?? [];
if (picture === undefined) throw new Error(`${PAGE} has no block that begins with main.ts, with the rooms of src`);

/** A line of the picture has a room and what it is for, and the next what it imports. */
export const rooms: readonly Room[] = [...picture.matchAll(/^(\S+?)\/? .*\n(?: +→ (.*)\n)?/gm)].map((
  [, name, used],
) => ({
  name: name!,
  mayImport: used?.split(", ") ?? [],
}));

/** Within ffi/netlink the encoding does not depend on the messages. */
export const foundations: readonly Room[] = [
  { name: "ffi/netlink/wire.ts", mayImport: [] },
  { name: "ffi/netlink/attrs.ts", mayImport: ["ffi/netlink/wire.ts"] },
  { name: "ffi/netlink/uapi", mayImport: ["ffi/netlink/wire.ts", "ffi/netlink/attrs.ts"] },
];

/** Schemas are used by the build only. They may import zod and one another; the code may only import their types. */
export const schemaMayImport = ["zod", "cni", "net", "explain/codes.ts"];

/** The longest of the `names` that contains the path. */
export function roomOf(path: string, names: readonly string[]): string | undefined {
  return names.filter((name) => path === name || path.startsWith(`${name}/`)).sort((a, b) => b.length - a.length)[0];
}
