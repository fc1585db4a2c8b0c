/**
 * Makes src/native/entry.c the first code of the program. It is appended to the file and mapped by the program header
 * that described the build notes, which nothing needs. The header that names the dynamic loader is hidden from the
 * kernel: then the kernel starts our code without it, and our code maps it only where it becomes the runtime.
 */
import { Elf, PF_R, PF_X, PT_INTERP, PT_LOAD, PT_NOTE, PT_NULL, PT_PHDR, roundUp } from "./elf.ts";

/** `code` is the ELF file that entry.c compiles to. Throws when a file does not have the expected layout. */
export function replaceEntry(program: Uint8Array, code: Uint8Array): Uint8Array {
  const { image, entry } = imageOf(new Elf(code)), original = new Elf(program), before = original.segments;
  const note = before.find(({ type }) => type === PT_NOTE), loadable = before.filter(({ type }) => type === PT_LOAD);
  const headers = before.find(({ type }) => type === PT_PHDR),
    loader = before.findIndex((one) => one.type === PT_INTERP);
  if (note === undefined || headers === undefined || loader < 0) {
    throw new Error("the program has no note segment to replace, does not map its headers, or names no loader");
  }
  // Loadable segments must be in ascending order, and the new one has the highest address.
  if (loadable.some(({ at }) => at > note.at)) throw new Error("a loadable segment follows the note segment");
  const alignment = Math.max(...loadable.map((one) => one.alignment));
  const offset = roundUp(program.length, alignment);
  const address = roundUp(Math.max(...loadable.map((one) => one.address + one.memoryBytes)), alignment);

  const bytes = new Uint8Array(offset + image.length), out = new Elf((bytes.set(program), bytes));
  bytes.set(image, offset);
  const build = new Bun.CryptoHasher("sha1").update(program).update(image).digest();
  bytes.set(build, offset + 24);
  // `parameters` in entry.c.
  [headers.address, original.entry, loader].forEach((value, index) => out.setU64(offset + index * 8, value));
  const size = image.length;
  out.setSegment({
    at: note.at,
    type: PT_LOAD,
    flags: PF_R | PF_X,
    offset,
    address,
    fileBytes: size,
    memoryBytes: size,
    alignment,
  });
  out.view.setUint32(before[loader]!.at, PT_NULL, true);
  out.entry = address + entry;
  return bytes;
}

/** The code, and where in it the entry is. */
function imageOf(code: Elf): { image: Uint8Array; entry: number } {
  const loadable = code.segments.filter(({ type, memoryBytes }) => type === PT_LOAD && memoryBytes > 0);
  const [segment] = loadable;
  if (segment === undefined || loadable.length > 1 || segment.fileBytes !== segment.memoryBytes) {
    throw new Error("the first code is not in one piece");
  }
  const image = code.bytes.subarray(segment.offset, segment.offset + segment.fileBytes);
  return { image, entry: code.entry - segment.address };
}
