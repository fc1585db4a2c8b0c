/** Files of a release as they are in an archive or a package: written into a folder, with one time and fixed modes. */
import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

interface Named {
  path: string;
  isExecutable?: boolean;
}

export type File = Named & ({ copyOf: string } | { text: string } | { bytes: Uint8Array });
export type Link = Named & { leadsTo: string };
export type Entry = File | Link;

/** Empties the folder first. */
export function writeEntries(folder: string, entries: readonly Entry[], epoch: number): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const entry of entries) write(join(folder, entry.path), entry);
  settle(folder, epoch);
}

function write(path: string, entry: Entry): void {
  mkdirSync(dirname(path), { recursive: true });
  if ("leadsTo" in entry) return symlinkSync(entry.leadsTo, path);
  writeFileSync(path, bytesOf(entry));
  chmodSync(path, modeOf(entry));
}

export function modeOf({ isExecutable }: Entry): number {
  return isExecutable ? 0o755 : 0o644;
}

export function bytesOf(file: File): Uint8Array {
  if ("bytes" in file) return file.bytes;
  return "text" in file ? new TextEncoder().encode(file.text) : readFileSync(file.copyOf);
}

export function isFile(entry: Entry): entry is File {
  return !("leadsTo" in entry);
}

/** In which the entries are, each after the one above it. */
export function directoriesOf(entries: readonly Named[]): string[] {
  const above = entries.flatMap(({ path }) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index)));
  return [...new Set(above)];
}

/** Whatever the umask and the clock of this machine are. */
function settle(folder: string, epoch: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) settle(path, epoch);
    else lutimesSync(path, epoch, epoch);
  }
  chmodSync(folder, 0o755);
  lutimesSync(folder, epoch, epoch);
}

/** As gzip(1) does it without a name and a time. */
export function compressed(file: File): File {
  return { path: `${file.path}.gz`, bytes: Bun.gzipSync(bytesOf(file) as Uint8Array<ArrayBuffer>, { level: 9 }) };
}
