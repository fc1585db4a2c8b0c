/** Which boot of the machine this is (random(4), "/proc interfaces"). */
import { readTextFile } from "./files.ts";

const FILE = "/proc/sys/kernel/random/boot_id";

let known: string | undefined;

/** A UUID. Throws where the kernel does not say: a guess would take a lease of an earlier boot for one of this boot. */
export function bootId(): string {
  known ??= readTextFile(FILE)?.trimEnd();
  if (known === undefined) throw new Error(`${FILE} is missing: mount all of /proc`);
  return known;
}
