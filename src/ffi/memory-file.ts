/** Files in memory, without a name: memfd_create(2). */
import { EINVAL } from "./errno.ts";
import { bind, cString, lastErrno } from "./libc.ts";

const MFD_CLOEXEC = 1, MFD_EXEC = 0x10;

const bindMemory = () =>
  bind({
    memfd_create: { args: ["ptr", "u32"], returns: "i32" },
  });
let symbols: ReturnType<typeof bindMemory> | undefined;
const c = () => (symbols ??= bindMemory());

/** Negative when there can be none; then `lastErrno` says why. */
export function memoryFile(name: string, isProgram = false): number {
  const { memfd_create } = c(), text = cString(name);
  const fd = memfd_create(text, isProgram ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC);
  // Kernels before 6.3 do not know MFD_EXEC; all their memory files are executable.
  return fd < 0 && isProgram && lastErrno() === EINVAL ? memfd_create(text, MFD_CLOEXEC) : fd;
}
