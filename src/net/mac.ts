/** Ethernet addresses as text and bytes. Pure. */

/** No link can be told to have it. A bridge that has lost its last port does, unless somebody has set another. */
export const NO_MAC = "00:00:00:00:00:00";

/**
 * Six bytes from `aa:bb:cc:dd:ee:ff`, `aa-bb-…` or `aabb.ccdd.eeff`, like Go's net.ParseMAC; or eight or twenty, for
 * links other than Ethernet.
 */
export function parseMac(text: string, bytes: 6 | 8 | 20 = 6): Uint8Array | undefined {
  const separator = text[2] === "-" ? "-" : text[4] === "." ? "." : ":";
  const groups = text.split(separator);
  const digits = separator === "." ? 4 : 2;
  if (groups.length * digits !== bytes * 2) return undefined;
  for (const group of groups) if (group.length !== digits) return undefined;
  try {
    return Uint8Array.fromHex(groups.join(""));
  } catch {
    return undefined;
  }
}

export function formatMac(bytes: Uint8Array): string {
  const hex = bytes.toHex();
  let text = hex.slice(0, 2);
  for (let at = 2; at < hex.length; at += 2) text += ":" + hex.slice(at, at + 2);
  return text;
}

/** The form that the kernel and results use; undefined when the text is not an Ethernet address. */
export function canonicalMac(text: string): string | undefined {
  const bytes = parseMac(text);
  return bytes && formatMac(bytes);
}
