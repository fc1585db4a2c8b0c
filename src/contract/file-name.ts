/** Names of files that are made of names of containers and networks, which may be longer than a file's. Pure. */

const LONGEST = 200;
/** How much of a longer one stays readable. */
export const LONG_NAME_PREFIX = 100;

/** Shortens a name that is too long for a file name: its beginning and a hash. */
export function fileName(text: string): string {
  if (text.length <= LONGEST) return text;
  return `${text.slice(0, LONG_NAME_PREFIX)}~${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
}
