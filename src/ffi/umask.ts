/** The file mode creation mask, umask(2): ours is strict, that of programs we start is the one we were given. */
import { libc } from "./libc.ts";

let inherited: number | undefined;

/** Whatever this process creates from here on is its owner's alone, unless its mode is set afterwards. */
export function restrictUmask(): void {
  inherited ??= libc.umask(0o077);
}

/** For starting other programs, whose files are none of our business. */
export function withInheritedUmask<T>(work: () => T): T {
  if (inherited === undefined) return work();
  libc.umask(inherited);
  try {
    return work();
  } finally {
    libc.umask(0o077);
  }
}
