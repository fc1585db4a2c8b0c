/**
 * Code that runs before the first instruction of the embedded runtime, and the changes to the ELF file for it.
 *
 * The runtime inside `dist/patchbay` obeys environment variables: BUN_OPTIONS=--preload=F executes F, BUN_BE_BUN turns
 * the program into a JavaScript interpreter, BUN_INSPECT listens on a socket, BUN_JSC_* can stop it from working. No
 * build flag turns them off. So the entry point of the program becomes a few instructions of our own, which
 *
 * - remove every variable with one of the prefixes below from the environment block before anything in the program can
 *   read it, whatever its letter case (the allocator ignores case); /proc/self/environ still shows them;
 * - exit with an error when the kernel says that the file gave its user more rights (AT_SECURE in getauxval(3): setuid,
 *   setgid, file capabilities), unless that user is root already;
 * - jump to the runtime's own entry point with registers and stack unchanged.
 *
 * See elf(5), and the System V ABI for the stack at entry. The code is at the end of the file, mapped by the program
 * header that described the build notes, which nothing needs.
 */

/** The code compares up to eight characters. */
export const hiddenPrefixes = [
  "BUN_",
  "JSC_",
  "JavaScriptCore",
  "WTF_",
  "WebKit",
  "Malloc",
  "MIMALLOC_",
  "ICU_",
  "SIMDUTF_",
  "GLIBCXX_",
  "HYPERFINE_",
  // Not all of NODE_: NODE_NAME and others are for other plugins.
  "NODE_CHANNEL_",
  "NODE_OPTIONS",
  "NODE_PATH",
  "NODE_PRESERVE_",
  "NODE_UNIQUE_ID",
  "NODE_V8_COVERAGE",
].map((prefix) => prefix.slice(0, 8));

const refusal = '{"cniVersion":"1.1.0","code":4,' +
  '"msg":"patchbay does not run setuid, setgid or with file capabilities"}\n';

const PT_LOAD = 1, PT_NOTE = 4;
const PF_X = 1, PF_R = 4;
const EM_X86_64 = 62;
const PAGE = 4096;

/** The program with the guard at its entry. Throws when the file does not have the expected layout. */
export function guardEntry(program: Uint8Array): Uint8Array {
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  if (view.getUint32(0) !== 0x7f454c46 || view.getUint16(18, true) !== EM_X86_64) {
    throw new Error("the entry guard is written for x86-64 ELF files only");
  }
  const start = view.getBigUint64(24, true);
  const headersAt = Number(view.getBigUint64(32, true));
  const headerSize = view.getUint16(54, true);
  let note: number | undefined;
  let memoryEnd = 0;
  for (let index = 0; index < view.getUint16(56, true); index++) {
    const at = headersAt + index * headerSize;
    const type = view.getUint32(at, true);
    if (type === PT_NOTE) note = at;
    if (type !== PT_LOAD) continue;
    // Loadable segments must be in ascending order, and the new one has the highest address.
    if (note !== undefined) throw new Error("a loadable segment follows the note segment");
    memoryEnd = Number(view.getBigUint64(at + 16, true) + view.getBigUint64(at + 40, true));
  }
  if (note === undefined) throw new Error("no note segment to replace");

  const code = guardCode(Number(start));
  const fileOffset = roundUp(program.length, PAGE);
  const address = roundUp(memoryEnd, PAGE);
  const guarded = new Uint8Array(fileOffset + code.length);
  guarded.set(program);
  guarded.set(code, fileOffset);
  const out = new DataView(guarded.buffer);
  out.setBigUint64(24, BigInt(address), true);
  out.setUint32(note, PT_LOAD, true);
  out.setUint32(note + 4, PF_R | PF_X, true);
  out.setBigUint64(note + 8, BigInt(fileOffset), true);
  out.setBigUint64(note + 16, BigInt(address), true);
  out.setBigUint64(note + 24, BigInt(address), true);
  out.setBigUint64(note + 32, BigInt(code.length), true);
  out.setBigUint64(note + 40, BigInt(code.length), true);
  out.setBigUint64(note + 48, BigInt(PAGE), true);
  return guarded;
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

/** For x86-64. Uses rax, rcx, rsi, rdi and r8 to r11; the dynamic loader needs rdx and rsp. */
function guardCode(start: number): Uint8Array {
  if (start > 0x7fffffff) throw new Error("the entry point does not fit the guard's jump");
  const message = new TextEncoder().encode(refusal);
  // deno-fmt-ignore
  const instructions = [
    0x48, 0x8b, 0x34, 0x24,                         //         mov  rsi, [rsp]              argc
    0x48, 0x8d, 0x74, 0xf4, 0x10,                   //         lea  rsi, [rsp+rsi*8+16]     read position: envp
    0x48, 0x89, 0xf7,                               //         mov  rdi, rsi                write position
    0x49, 0xb8, ...new Array(8).fill(0x20),         //         mov  r8, 0x2020202020202020
    0x48, 0xad,                                     // keep:   lodsq
    0x48, 0xab,                                     //         stosq
    0x48, 0x85, 0xc0,                               //         test rax, rax                the list's end?
    0x74, 0x28,                                     //         jz   rest
    0x48, 0x8b, 0x00,                               //         mov  rax, [rax]              eight characters; behind
    0x4c, 0x09, 0xc0,                               //         or   rax, r8                 the last string stand more
    0x48, 0x8d, 0x0d, 0x84, 0x00, 0x00, 0x00,       //         lea  rcx, [prefixes]
    0x4c, 0x8b, 0x09,                               // try:    mov  r9, [rcx]               mask
    0x4d, 0x85, 0xc9,                               //         test r9, r9
    0x74, 0xe2,                                     //         jz   keep
    0x49, 0x21, 0xc1,                               //         and  r9, rax
    0x4c, 0x3b, 0x49, 0x08,                         //         cmp  r9, [rcx+8]
    0x48, 0x8d, 0x49, 0x10,                         //         lea  rcx, [rcx+16]
    0x75, 0xeb,                                     //         jne  try
    0x48, 0x83, 0xef, 0x08,                         //         sub  rdi, 8                  take it back
    0xeb, 0xcf,                                     //         jmp  keep
    0x48, 0x89, 0xf1,                               // rest:   mov  rcx, rsi                zeros where entries were
    0x48, 0x29, 0xf9,                               //         sub  rcx, rdi
    0xc1, 0xe9, 0x03,                               //         shr  ecx, 3
    0xf3, 0x48, 0xab,                               //         rep  stosq
    0x45, 0x31, 0xc9,                               //         xor  r9d, r9d                AT_SECURE
    0x45, 0x31, 0xd2,                               //         xor  r10d, r10d              AT_UID
    0x48, 0x8b, 0x06,                               // scan:   mov  rax, [rsi]              the auxiliary vector
    0x48, 0x8b, 0x4e, 0x08,                         //         mov  rcx, [rsi+8]
    0x48, 0x83, 0xc6, 0x10,                         //         add  rsi, 16
    0x83, 0xf8, 0x17,                               //         cmp  eax, 23
    0x4c, 0x0f, 0x44, 0xc9,                         //         cmove r9, rcx
    0x83, 0xf8, 0x0b,                               //         cmp  eax, 11
    0x4c, 0x0f, 0x44, 0xd1,                         //         cmove r10, rcx
    0x85, 0xc0,                                     //         test eax, eax
    0x75, 0xe3,                                     //         jnz  scan
    0x4d, 0x85, 0xc9,                               //         test r9, r9
    0x74, 0x05,                                     //         jz   start
    0x4d, 0x85, 0xd2,                               //         test r10, r10
    0x75, 0x07,                                     //         jnz  refuse
    0xb8, ...u32(start),                            // start:  mov  eax, the runtime's entry
    0xff, 0xe0,                                     //         jmp  rax
    0xb8, ...u32(1),                                // refuse: mov  eax, write(2)
    0xbf, ...u32(1),                                //         mov  edi, stdout
    0x48, 0x8d, 0x35, ...u32(0x18 + prefixTable.length), //    lea  rsi, [message]
    0xba, ...u32(message.length),                   //         mov  edx, its length
    0x0f, 0x05,                                     //         syscall
    0xb8, ...u32(231),                              //         mov  eax, exit_group(2)
    0xbf, ...u32(1),                                //         mov  edi, 1
    0x0f, 0x05,                                     //         syscall
    ...new Array(5).fill(0xcc),
  ];
  return new Uint8Array([...instructions, ...prefixTable, ...message]);
}

/** Mask and value for each prefix, in lower case like in the code above; ends with a zero mask. */
const prefixTable: Uint8Array = (() => {
  const table = new Uint8Array((hiddenPrefixes.length + 1) * 16);
  hiddenPrefixes.forEach((prefix, index) => {
    const characters = new TextEncoder().encode(prefix).map((character) => character | 0x20);
    table.fill(0xff, index * 16, index * 16 + characters.length);
    table.set(characters, index * 16 + 8);
  });
  return table;
})();

function u32(value: number): number[] {
  return [value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, value >>> 24];
}
