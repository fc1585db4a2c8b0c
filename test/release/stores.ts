/**
 * The stores of a release as files: everything that one call leaves for a later one. Files that are no text are kept as
 * hexadecimal digits in NAME.hex, and modes in the file MODES.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Machine } from "../support/machine.ts";

export interface StoredFile {
  mode: string;
  bytes: Uint8Array;
}

/** By absolute path. */
export type Stores = ReadonlyMap<string, StoredFile>;

/** Ledgers, results, leases, the journal, what tuning and flannel keep, and netavark's files. */
const ROOTS = ["/run/patchbay", "/run/cni", "/var/lib/cni", "/run/networks"];
/** Files of running processes, and locks. */
const PASSING = String.raw`-name '*.sock' -o -name 'serve~*' -o -name '*.pid' -o -name '*.lock'`;

export const folderOf = (version: string): string => resolve(import.meta.dir, `stores-of-${version}`);

export async function readStores(machine: Machine): Promise<Stores> {
  const lines = await machine.sh(`
    find ${ROOTS.join(" ")} -type f ! \\( ${PASSING} \\) 2>/dev/null | sort | while read -r file; do
      echo "$(stat -c %a "$file") $file $(od -An -v -tx1 "$file" | tr -d ' \\n')"
    done`);
  return new Map(
    lines.split("\n").filter((line) => line !== "").map((line) => {
      const [mode, path, digits = ""] = line.split(" ");
      return [path!, { mode: mode!, bytes: Uint8Array.fromHex(digits) }];
    }),
  );
}

/** In place of what is there. */
export async function putStores(machine: Machine, stores: Stores): Promise<void> {
  // The machine sees this folder, too.
  const folder = mkdtempSync(`${tmpdir()}/stores-`);
  try {
    for (const [path, { mode, bytes }] of stores) {
      mkdirSync(dirname(folder + path), { recursive: true, mode: 0o700 });
      writeFileSync(folder + path, bytes);
      chmodSync(folder + path, parseInt(mode, 8));
    }
    const copies = ROOTS.map((root) => `test ! -d ${folder}${root} || cp -a ${folder}${root} ${dirname(root)}/`);
    await machine.sh(`
      find ${ROOTS.join(" ")} -type f ! \\( ${PASSING} \\) -delete 2>/dev/null || true
      ${copies.join("\n")}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function writeStores(folder: string, stores: Stores): void {
  for (const [path, { bytes }] of stores) {
    const file = join(folder, isText(bytes) ? path : `${path}.hex`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, isText(bytes) ? bytes : `${bytes.toHex().replaceAll(/.{64}/g, "$&\n")}\n`);
  }
  writeFileSync(join(folder, "MODES"), [...stores].map(([path, { mode }]) => `${mode} ${path}\n`).join(""));
}

export function storesIn(folder: string): Stores {
  const modes = readFileSync(join(folder, "MODES"), "utf8").trim().split("\n").map((line) => line.split(" "));
  const names = new Set(readdirSync(folder, { recursive: true, encoding: "utf8" }));
  return new Map(modes.map(([mode, path]) => {
    const name = path!.slice(1), isHex = names.has(`${name}.hex`);
    const bytes = isHex
      ? Uint8Array.fromHex(readFileSync(join(folder, `${name}.hex`), "utf8").replaceAll("\n", ""))
      : Uint8Array.from(readFileSync(join(folder, name)));
    return [path!, { mode: mode!, bytes }];
  }));
}

function isText(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte >= 0x20 && byte < 0x7f || byte === 0x0a || byte === 0x0d);
}
