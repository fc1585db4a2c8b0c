/** The umask(2): ours is strict; programs that we start get the one we inherited. */
import { libc } from "./libc.ts";

let inherited: number | undefined;

/** From here on, files that this process creates are accessible to their owner only, unless their mode is set later. */
export function restrictUmask(): void {
  inherited ??= libc.umask(0o077);
}

/** Programs that this process starts get the strict one from here on. */
export function keepUmask(): void {
  inherited = undefined;
}

/** For starting other programs. */
export function withInheritedUmask<T>(work: () => T): T {
  if (inherited === undefined) return work();
  const own = libc.umask(inherited);
  try {
    return work();
  } finally {
    libc.umask(own);
  }
}
