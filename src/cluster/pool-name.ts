/** Names of pools. ADD asks: loops here, because the first regular expression of a process costs it 40 µs. */

const LONGEST = 63;

/** Small letters and digits, between them also dots and hyphens: it fits into a label of DNS and a file's name. */
export function isPoolName(name: string): boolean {
  const last = name.length - 1;
  // Drafts of files end so.
  if (last < 0 || last >= LONGEST || name.endsWith(".tmp")) return false;
  for (let index = 0; index <= last; index++) {
    if (isLetterOrDigit(name[index]!)) continue;
    if (index === 0 || index === last || (name[index] !== "." && name[index] !== "-")) return false;
  }
  return true;
}

function isLetterOrDigit(text: string): boolean {
  return (text >= "a" && text <= "z") || (text >= "0" && text <= "9");
}
