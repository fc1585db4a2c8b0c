/** Files in memory, without a name: memfd_create(2). */
import { EINVAL } from "./errno.ts";
import { closeFile, writeAll } from "./files.ts";
import { bind, cString, lastErrno } from "./libc.ts";

const MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_EXEC = 0x10;
const F_ADD_SEALS = 1033, F_SEAL_SHRINK = 2, F_SEAL_GROW = 4, F_SEAL_WRITE = 8;

const bindMemory = () =>
  bind({
    memfd_create: { args: ["ptr", "u32"], returns: "i32" },
    fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
  });
let symbols: ReturnType<typeof bindMemory> | undefined;
const c = () => (symbols ??= bindMemory());

/** Nobody can change it any more, whoever gets it. Undefined when there can be none. */
export function sealedFile(name: string, content: Uint8Array): number | undefined {
  const fd = c().memfd_create(cString(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return undefined;
  try {
    writeAll(fd, content);
    if (c().fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) === 0) return fd;
  } catch {
    // There is no memory for it.
  }
  closeFile(fd);
  return undefined;
}

/** Negative when there can be none; then `lastErrno` says why. */
export function memoryFile(name: string, isProgram = false): number {
  const { memfd_create } = c(), text = cString(name);
  const fd = memfd_create(text, isProgram ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC);
  // Kernels before 6.3 do not know MFD_EXEC; all their memory files are executable.
  return fd < 0 && isProgram && lastErrno() === EINVAL ? memfd_create(text, MFD_CLOEXEC) : fd;
}
