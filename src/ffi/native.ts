/**
 * bun:ffi without its module. Importing "bun:ffi" evaluates JavaScript that wraps these natives, which costs every
 * process 0.5 ms of its 3.5 (measured, Bun 1.4.5); the natives themselves hang on `Bun.FFI`. Only types come from
 * "bun:ffi", and compile/tidy.ts sees to it.
 */
import type * as Ffi from "bun:ffi";

type Natives = Pick<typeof Ffi, "ptr" | "read" | "toArrayBuffer"> & {
  /** Answers an Error where the module's function throws it. */
  dlopen<Table extends Record<string, Ffi.FFIFunction>>(library: string, table: Table): Ffi.Library<Table> | Error;
};

const natives = (Bun as unknown as { FFI: Natives }).FFI;

export const ptr = natives.ptr;
export const read = natives.read;
export const toArrayBuffer = natives.toArrayBuffer;

/** The two types that have no name as text: 64-bit integers that are numbers where they fit. */
export const FFIType = { i64_fast: 15, u64_fast: 16 } as Pick<typeof Ffi.FFIType, "i64_fast" | "u64_fast">;

export function dlopen<Table extends Record<string, Ffi.FFIFunction>>(library: string, table: Table) {
  const opened = natives.dlopen(library, table);
  if (opened instanceof Error) throw opened;
  return opened;
}
