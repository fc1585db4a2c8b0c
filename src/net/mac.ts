/** Ethernet addresses as text and bytes. Pure. */

/** Six bytes from `aa:bb:cc:dd:ee:ff`, `aa-bb-…` or `aabb.ccdd.eeff`, as Go's net.ParseMAC takes them. */
export function parseMac(text: string): Uint8Array | undefined {
  const pairs = /^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}$/.test(text)
    ? text.replaceAll(".", "").match(/../g)!
    : /^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$/.test(text) || /^[0-9a-fA-F]{2}(-[0-9a-fA-F]{2}){5}$/.test(text)
    ? text.split(/[:-]/)
    : undefined;
  return pairs && Uint8Array.from(pairs, (pair) => parseInt(pair, 16));
}

export function formatMac(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** A unicast, locally administered address, as the kernel picks one for a virtual link. */
export function randomMac(): string {
  const bytes = Uint8Array.from({ length: 6 }, () => Math.random() * 256);
  bytes[0] = (bytes[0]! & 0xfe) | 0x02;
  return formatMac(bytes);
}
