/** VLAN links of this namespace, from the list that the kernel has of these alone: a dump would have every link. */
import { readTextFile } from "./files.ts";

/** Empty where the kernel has never made one. */
export function vlanLinksUpon(parent: string): { name: string; id: number }[] {
  return vlanLinksIn(readTextFile("/proc/net/vlan/config") ?? "").filter((link) => link.parent === parent);
}

/** Two lines of headings, then `ovs0.100 | 100 | ovs0`. A name may have a `|`, and no blank. Pure. */
export function vlanLinksIn(text: string): { name: string; id: number; parent: string }[] {
  return [...text.matchAll(/^(\S+) *\| *([0-9]+) *\| *(\S+)$/gm)].map(([, name, id, parent]) => (
    { name: name!, id: Number(id), parent: parent! }
  ));
}
