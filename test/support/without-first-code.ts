/** The program as Bun built it, with the runtime's own entry: then it obeys the variables that src/native/entry.c hides. */
import { readFileSync } from "node:fs";
import { Elf, PT_INTERP, PT_LOAD } from "../../compile/elf.ts";

export function withoutFirstCode(path: string): Uint8Array {
  const program = new Elf(readFileSync(path)), { segments } = program;
  // `parameters` in src/native/entry.c.
  const { offset } = segments.findLast(({ type }) => type === PT_LOAD)!;
  program.entry = program.u64(offset + 8);
  program.view.setUint32(segments[program.u64(offset + 16)]!.at, PT_INTERP, true);
  return program.bytes;
}
