/** Which boot of the machine this is (random(4), "/proc interfaces"). */
import { readTextFile } from "./files.ts";

const FILE = "/proc/sys/kernel/random/boot_id";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let known: string | undefined;

/** A UUID. Throws where the kernel does not say: a guess would take a lease of an earlier boot for one of this boot. */
export function bootId(): string {
  const obstacle = whyNoBootId();
  if (obstacle !== undefined) throw new Error(obstacle);
  return known!;
}

/** Undefined when the kernel says which boot this is. */
export function whyNoBootId(): string | undefined {
  if (known !== undefined) return undefined;
  const text = readTextFile(FILE)?.trimEnd();
  if (text === undefined) return `${FILE} is missing: mount all of /proc`;
  if (!UUID.test(text)) return `${FILE} has no UUID: mount all of /proc`;
  known = text;
  return undefined;
}
