/** Becoming another program: execve(2). */
import type { Program } from "./spawn.ts";
import { bind, cString, lastErrno } from "./libc.ts";
import { SyscallError } from "./errno.ts";
import { ptr } from "./native.ts";
import { withInheritedUmask } from "./umask.ts";

/** The process stays the same to others; descriptors stay open unless they are closed on execution. */
export function execute({ path, argv, environment }: Omit<Program, "descriptors">): never {
  const { execve } = bind({ execve: { args: ["ptr", "ptr", "ptr"], returns: "i32" } });
  const file = cString(path), words = argv.map(cString);
  const entries = environment.map((entry) => new Uint8Array([...entry, 0]));
  const pointers = (texts: readonly Uint8Array[]) =>
    new BigUint64Array([...texts.map((one) => BigInt(ptr(one))), 0n]);
  withInheritedUmask(() => execve(file, pointers(words), pointers(entries)));
  const errno = lastErrno();
  // This use keeps the texts, to which the arrays hold only pointers, from being collected until here.
  throw new SyscallError("execve", errno, words.length + entries.length > 0 ? path : "");
}
