/**
 * Programs of a few hundred bytes that wait in our place, where the kernel answers long after the effect is visible.
 *
 * Removing a veth makes the kernel wait 15 to 55 ms until every processor has forgotten the device, long after the
 * device has become invisible in both namespaces. The sender of the request waits as well. So a child sends it, and we
 * go on as soon as the device is gone. fork(2) cannot make that child: a Bun process loses its compiled code in it.
 *
 * The program runs from a memory file and gets its socket as descriptor 3. It closes all other descriptors, so that an
 * engine that reads our output sees the end of it. Its exit status is the errno of the kernel's answer.
 */
import { EINVAL, SyscallError } from "./errno.ts";
import { closeFile, writeAll } from "./files.ts";
import { bind, cString, lastErrno } from "./libc.ts";
import { spawn, waitFor } from "./spawn.ts";

/** Machine code for x86-64 in hexadecimal, like the rest below. */
const CLOSE_ALL_BUT_3 = "bf04000000" + // mov  edi, 4  close_range(4, ~0, 0): whatever the engine left open
  "beffffffff" + // mov  esi, 0xffffffff
  "31d2" + // xor  edx, edx
  "b8b4010000" + // mov  eax, 436
  "0f05"; // syscall

/** The four bytes at MESSAGE_LENGTH_AT are replaced by the length of the message. */
const SEND = CLOSE_ALL_BUT_3 +
  "bf03000000" + // mov  edi, 3  sendto(3, message, length, 0, NULL, 0)
  "488d3547000000" + // lea  rsi, [message]
  "ba00000000" + // mov  edx, length
  "4531d2" + // xor  r10d, r10d
  "4531c0" + // xor  r8d, r8d
  "4531c9" + // xor  r9d, r9d
  "b82c000000" + // mov  eax, 44
  "0f05" + // syscall
  "85c0" + // test  eax, eax
  "7823" + // js  failed
  "4881ec00100000" + // sub  rsp, 4096  recvfrom(3, stack, 4096, 0, NULL, NULL)
  "bf03000000" + // mov  edi, 3
  "4889e6" + // mov  rsi, rsp
  "ba00100000" + // mov  edx, 4096
  "b82d000000" + // mov  eax, 45
  "0f05" + // syscall
  "85c0" + // test  eax, eax
  "7804" + // js  failed
  "8b442410" + // mov  eax, [rsp + 16]  struct nlmsgerr.error
  "89c7" + // mov  edi, eax  failed: exit(-eax)
  "f7df" + // neg  edi
  "b83c000000" + // mov  eax, 60
  "0f05"; // syscall
const MESSAGE_LENGTH_AT = 0x20;

const HOLD = CLOSE_ALL_BUT_3 +
  "b839000000" + // mov  eax, 57  fork()
  "0f05" + // syscall
  "85c0" + // test  eax, eax
  "7510" + // jnz  parent
  "31ff" + // xor  edi, edi  poll(NULL, 0, 50)
  "31f6" + // xor  esi, esi
  "ba32000000" + // mov  edx, 50
  "b807000000" + // mov  eax, 7
  "0f05" + // syscall
  "31ff" + // xor  edi, edi  parent: exit(0)
  "b83c000000" + // mov  eax, 60
  "0f05"; // syscall

const ELF_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const LOAD_ADDRESS = 0x400000;

/** The program: one header, one segment, the code. See elf(5). */
function image(code: Uint8Array): Uint8Array {
  const codeAt = ELF_HEADER_BYTES + PROGRAM_HEADER_BYTES;
  const size = codeAt + code.length;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // "\x7fELF", 64 bits, little-endian, version
  view.setUint16(16, 2, true); // ET_EXEC
  view.setUint16(18, 62, true); // EM_X86_64
  view.setUint32(20, 1, true);
  view.setUint32(24, LOAD_ADDRESS + codeAt, true); // entry
  view.setUint32(32, ELF_HEADER_BYTES, true); // where the program header is
  view.setUint16(52, ELF_HEADER_BYTES, true);
  view.setUint16(54, PROGRAM_HEADER_BYTES, true);
  view.setUint16(56, 1, true); // one program header
  view.setUint32(64, 1, true); // PT_LOAD
  view.setUint32(68, 5, true); // readable, executable
  view.setUint32(80, LOAD_ADDRESS, true);
  view.setUint32(88, LOAD_ADDRESS, true);
  view.setUint32(96, size, true);
  view.setUint32(104, size, true);
  view.setUint32(112, 0x1000, true); // alignment
  bytes.set(code, codeAt);
  return bytes;
}

/**
 * Sends the message from a child and answers its process id. Answers undefined on processors other than x86-64 and on
 * hosts that do not execute memory files: there the caller has to send the request itself.
 */
export function sendFromChild(socketFd: number, message: Uint8Array): number | undefined {
  const send = Uint8Array.fromHex(SEND);
  const code = new Uint8Array(send.length + message.length);
  code.set(send);
  code.set(message, send.length);
  new DataView(code.buffer).setUint32(MESSAGE_LENGTH_AT, message.length, true);
  return start(code, socketFd);
}

/**
 * Closes the descriptor of a socket whose last close the kernel delays, and lets a child do that last close. The child
 * passes it on to a child of its own, which nobody has to wait for, and which closes it 50 ms later, when the kernel has
 * nothing left to wait for.
 */
export function closeBehind(fd: number): void {
  const child = start(Uint8Array.fromHex(HOLD), fd);
  closeFile(fd);
  if (child !== undefined) waitFor(child);
}

function start(code: Uint8Array, fd3: number): number | undefined {
  if (process.arch !== "x64") return undefined;
  const MFD_CLOEXEC = 1, MFD_EXEC = 0x10;
  const { memfd_create } = bind({ memfd_create: { args: ["ptr", "u32"], returns: "i32" } });
  const name = cString("patchbay-reaper");
  let fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
  // Kernels before 6.3 do not know MFD_EXEC; all their memory files are executable.
  if (fd < 0 && lastErrno() === EINVAL) fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) return undefined;
  try {
    writeAll(fd, image(code));
    // By our own process id: in the child, descriptor 3 is the socket.
    return spawn({
      path: `/proc/${process.pid}/fd/${fd}`,
      argv: ["patchbay-reaper"],
      environment: [],
      descriptors: [undefined, undefined, undefined, fd3],
    });
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  } finally {
    closeFile(fd);
  }
}
