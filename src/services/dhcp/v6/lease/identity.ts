/** The identity of a DHCPv6 client: one DUID a container, one IAID an interface (RFC 8415 sections 11 and 12). Pure. */

const DUID_UUID = 4, UUID_BYTES = 16, IAID_BYTES = 4;
/** Option 61 of DHCPv4 with a DUID in it (RFC 4361 section 6.1). */
const RFC4361_TYPE = 0xff;
/** Version 8, of one's own making, and the variant of RFC 9562 section 4. */
const VERSION = 0x80, VARIANT = 0x80;

/** DUID-UUID (RFC 6355): the same whenever the container joins the network, another on another machine. */
export function duidOf(machineId: string, containerId: string, network: string): Uint8Array {
  const uuid = hash(`${machineId}${containerId}/${network}`).slice(0, UUID_BYTES);
  uuid[6] = VERSION | (uuid[6]! & 0x0f);
  uuid[8] = VARIANT | (uuid[8]! & 0x3f);
  return Uint8Array.of(0, DUID_UUID, ...uuid);
}

/** Unique within the DUID. */
export function iaidOf(ifName: string): Uint8Array {
  return hash(ifName).slice(0, IAID_BYTES);
}

/** Ties the IPv4 lease to the IPv6 one in the eyes of servers. */
export function clientIdOfDuid(duid: Uint8Array, iaid: Uint8Array): Uint8Array {
  return Uint8Array.of(RFC4361_TYPE, ...iaid, ...duid);
}

function hash(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}
