/**
 * Keeps JavaScriptCore from starting a thread that prepares heap memory before its use.
 *
 * From 64 blocks of heap on (1 MiB, which a plugin exceeds while it loads), JavaScriptCore touches 32 more in another
 * thread, and the allocator then starts a second thread because of the first. That helps servers; a process that ends
 * after a few milliseconds pays 130 page faults and 0.4 ms of processor time for memory that it never uses.
 *
 * The option is JavaScriptCore's `warmUpMarkedBlockStartAfterBlocks`. Only `BUN_JSC_*` in the environment sets it, which
 * src/native/entry.c removes. So this changes the default in the machine code: two instructions of Options::initialize()
 * store three adjacent options.
 */

/** movabs rax, 64 << 32 | 32 (blocks to start after, blocks to warm up) … movabs rax, 10.0 (idle timeout, a double). */
const before = [0x48, 0xb8, 32, 0, 0, 0, 64, 0, 0, 0, 0x48, 0x89, 0x05];
const between = 4; // the address of the first store, relative to the instruction
const after = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0x24, 0x40];
const START_AFTER_AT = 6;
const NEVER = [0xff, 0xff, 0xff, 0x7f];

/** Changes the option in place. Throws when JavaScriptCore is not the one it was written for. */
export function leaveHeapCold(program: Uint8Array): void {
  const bytes = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  const first = Buffer.from(before), last = Buffer.from(after);
  const found: number[] = [];
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (bytes.indexOf(last, at) === at + first.length + between) found.push(at);
  }
  if (found.length !== 1) {
    throw new Error(
      `found the defaults of JavaScriptCore's warmUpMarkedBlock options in ${found.length} places instead of 1`,
    );
  }
  bytes.set(NEVER, found[0]! + START_AFTER_AT);
}
