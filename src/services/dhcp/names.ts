/** Domain names in options: the search list's compressed form (RFC 3397, RFC 1035 section 4.1.4), and names as text. Pure. */

const MOST_NAMES = 32, LONGEST_NAME = 253, LONGEST_LABEL = 63, POINTER = 0xc0;

/** Letters, digits, hyphens and, as in practice, underscores; nothing that a shell or a file would understand. */
export function isDomainName(text: string): boolean {
  if (text.length === 0 || text.length > LONGEST_NAME) return false;
  return text.split(".").every((label) =>
    label.length <= LONGEST_LABEL && /^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$/.test(label)
  );
}

/** Returns undefined when the list is malformed, or has something in it that is no domain name. */
export function readSearchList(bytes: Uint8Array): string[] | undefined {
  const names: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const read = readName(bytes, at);
    if (read === undefined || !isDomainName(read.name) || names.length === MOST_NAMES) return undefined;
    names.push(read.name);
    at = read.end;
  }
  return names;
}

/** A pointer goes to before the name's own part that has it, so reading ends. */
function readName(bytes: Uint8Array, start: number): { name: string; end: number } | undefined {
  const labels: string[] = [];
  let at = start, partBegan = start, end: number | undefined, length = 0;
  for (;;) {
    const size = bytes[at];
    if (size === undefined) return undefined;
    if (size === 0) return { name: labels.join("."), end: end ?? at + 1 };
    if ((size & POINTER) === POINTER) {
      const low = bytes[at + 1], to = ((size & 0x3f) << 8) | (low ?? 0);
      if (low === undefined || to >= partBegan) return undefined;
      end ??= at + 2;
      at = partBegan = to;
      continue;
    }
    length += size + 1;
    if (size > LONGEST_LABEL || at + 1 + size > bytes.length || length > LONGEST_NAME + 1) return undefined;
    labels.push(String.fromCharCode(...bytes.subarray(at + 1, at + 1 + size)));
    at += 1 + size;
  }
}

/** What a server wrote, for people: everything that is not plain text is escaped. */
export function printableBytes(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return text;
}
