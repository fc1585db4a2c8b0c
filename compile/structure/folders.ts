/** Folders beside one another do not import one another in a circle: a reader would find no place to begin. */
import type { Source } from "./sources.ts";

/** An import of a file from another, in two folders with the same parent. */
interface Arrow {
  from: string;
  to: string;
  shown: string;
}

export function folderCircles(sources: readonly Source[]): string[] {
  const arrows = sources.flatMap(({ path, imports }) => imports.map((imported) => arrowOf(path, imported)))
    .filter((arrow) => arrow !== undefined);
  return arrows.filter(({ from, to }) => leadsTo(from, to, arrows))
    .map(({ from, to, shown }) => `${shown}: closes a circle of folders, ${from} → ${to} → … → ${from}`);
}

function arrowOf(path: string, imported: string): Arrow | undefined {
  const ours = path.split("/"), theirs = imported.split("/");
  const at = ours.findIndex((name, index) => name !== theirs[index]);
  const areFolders = imported.startsWith("src/") && at >= 0 && at < Math.min(ours.length, theirs.length) - 1;
  const folder = (names: string[]) => names.slice(0, at + 1).join("/");
  return areFolders ? { from: folder(ours), to: folder(theirs), shown: `${path} imports ${imported}` } : undefined;
}

function leadsTo(folder: string, start: string, arrows: readonly Arrow[], seen = new Set<string>()): boolean {
  if (start === folder) return true;
  if (seen.has(start)) return false;
  seen.add(start);
  return arrows.some(({ from, to }) => from === start && leadsTo(folder, to, arrows, seen));
}
