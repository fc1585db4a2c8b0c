/**
 * The environment of the call: the one that this process was started with or, in a resident, the caller's. A block is
 * bytes: `NAME=value` entries, each with a terminating NUL.
 */
import type { Pointer } from "bun:ffi";
import { O_RDONLY, openFile, readAll, whileOpen } from "./files.ts";
import { bindLater, cString, fromUtf8, LIBDL, utf8 } from "./libc.ts";
import { read, toArrayBuffer } from "./native.ts";

const dl = bindLater({ dlsym: { args: ["ptr", "ptr"], returns: "ptr" } }, LIBDL);

let callers: { block: Uint8Array; variables: ReadonlyMap<string, string> } | undefined;

/** From here on, the environment is this one. */
export function takeEnvironment(block: Uint8Array): void {
  const entries = fromUtf8(block).split("\0").slice(0, -1).map((entry): [string, string] => {
    const equals = entry.indexOf("=");
    return equals < 0 ? [entry, ""] : [entry.slice(0, equals), entry.slice(equals + 1)];
  });
  callers = { block, variables: new Map(entries) };
}

/** The last one counts when a variable is repeated. */
export function variable(name: string): string | undefined {
  return callers === undefined ? process.env[name] : callers.variables.get(name);
}

/**
 * Not process.env, which loses entries that are not UTF-8 and merges repeated names. /proc/self/environ is the fallback
 * for a process that moved its environment: opening it takes 0.1 ms, ten times as long as any other file.
 */
export function environmentBlock(): Uint8Array {
  return callers?.block ?? blockOnTheStack() ?? blockInProc();
}

/** The block's entries, without their NULs. */
export function environmentEntries(): Uint8Array[] {
  const block = environmentBlock(), entries: Uint8Array[] = [];
  for (let start = 0; start < block.length;) {
    const end = block.indexOf(0, start);
    const stop = end < 0 ? block.length : end;
    if (stop > start) entries.push(block.subarray(start, stop));
    start = stop + 1;
  }
  return entries;
}

/**
 * Our environment byte for byte, with these variables set. The variables of the Bun runtime in this binary are removed,
 * because they would affect a child that is also built with Bun.
 */
export function environmentForChild(variables: Readonly<Record<string, string>> = {}): Uint8Array[] {
  const inherited = environmentEntries().filter((entry) => {
    const name = fromUtf8(entry.subarray(0, Math.max(entry.indexOf(0x3d), 0)));
    return !Object.hasOwn(variables, name) && !name.startsWith("BUN_");
  });
  return [...inherited, ...Object.entries(variables).map(([name, value]) => utf8(`${name}=${value}`))];
}

/** environ(7): the kernel places the entries one after another, in the order of their pointers. */
function blockOnTheStack(): Uint8Array | undefined {
  const environ = dl().dlsym(null, cString("environ"));
  const entries = environ === null ? 0 : read.ptr(environ, 0);
  if (entries === 0) return undefined;
  const first = read.ptr(entries as Pointer, 0);
  if (first === 0) return undefined;
  let last = first;
  for (let offset = 8;; offset += 8) {
    const entry = read.ptr(entries as Pointer, offset);
    if (entry === 0) break;
    if (entry <= last) return undefined;
    last = entry;
  }
  if (last - first > 4 * 1024 * 1024) return undefined;
  let end = last;
  while (read.u8(end as Pointer, 0) !== 0) end++;
  const block = new Uint8Array(toArrayBuffer(first as Pointer, 0, end + 1 - first));
  // Fewer or more entries than pointers: some were removed, or lie elsewhere.
  let count = 0;
  for (let at = 0; at < block.length; at = block.indexOf(0, at) + 1) count++;
  return read.ptr(entries as Pointer, count * 8) === 0 ? block : undefined;
}

function blockInProc(): Uint8Array {
  const path = "/proc/self/environ";
  return whileOpen(openFile(path, O_RDONLY), (fd) => readAll(fd, undefined, path));
}
