/**
 * bun:ffi without its module. Importing "bun:ffi" evaluates JavaScript wrappers, which costs every process 0.5 ms of
 * its 3.5 (measured, Bun 1.4.5). The natives themselves are properties of `Bun.FFI`, which has no types. Only types
 * come from "bun:ffi"; compile/tidy.ts checks that.
 */
import type * as Ffi from "bun:ffi";

type Natives = Pick<typeof Ffi, "ptr" | "read" | "toArrayBuffer"> & {
  /** Returns an Error where the module's function throws it. */
  dlopen<Table extends Record<string, Ffi.FFIFunction>>(library: string, table: Table): Ffi.Library<Table> | Error;
};

const natives = (Bun as unknown as { FFI: Natives }).FFI;

export const ptr = natives.ptr;
export const read = natives.read;
export const toArrayBuffer = natives.toArrayBuffer;

/** The two types that cannot be named by text: 64-bit integers that become numbers where they fit. */
export const FFIType = { i64_fast: 15, u64_fast: 16 } as Pick<typeof Ffi.FFIType, "i64_fast" | "u64_fast">;

export function dlopen<Table extends Record<string, Ffi.FFIFunction>>(library: string, table: Table) {
  const opened = natives.dlopen(library, table);
  if (opened instanceof Error) throw opened;
  return opened;
}
