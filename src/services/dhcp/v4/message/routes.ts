/** Routes in options: classless (RFC 3442), classful (RFC 2132 section 5.8). Pure. */
import { networkOf, type Prefix } from "../../../../net/address.ts";

export interface GivenRoute {
  destination: Prefix;
  /** Undefined: the destination is on the link. */
  gateway?: Uint8Array;
}

const MOST_ROUTES = 64;
const LOOPBACK = 127, MULTICAST = 224;

/** Returns on-link routes first, because the others may need them; undefined when the option is malformed. */
export function readClasslessRoutes(bytes: Uint8Array): GivenRoute[] | undefined {
  const routes: GivenRoute[] = [];
  for (let at = 0; at < bytes.length;) {
    const bits = bytes[at]!, length = Math.ceil(bits / 8), end = at + 1 + length + 4;
    if (bits > 32 || end > bytes.length || routes.length === MOST_ROUTES) return undefined;
    const written = new Uint8Array(4);
    written.set(bytes.subarray(at + 1, at + 1 + length));
    const destination = { bytes: networkOf({ bytes: written, bits }), bits };
    const gateway = bytes.slice(end - 4, end);
    if (isForbidden(destination)) return undefined;
    routes.push(gateway.every((byte) => byte === 0) ? { destination } : { destination, gateway });
    at = end;
  }
  return routes.sort((one, other) => Number(one.gateway !== undefined) - Number(other.gateway !== undefined));
}

/** Destination and router in turn; the class of the destination is its length. */
export function readStaticRoutes(bytes: Uint8Array): GivenRoute[] | undefined {
  if (bytes.length === 0 || bytes.length % 8 !== 0 || bytes.length / 8 > MOST_ROUTES) return undefined;
  const routes: GivenRoute[] = [];
  for (let at = 0; at < bytes.length; at += 8) {
    const written = bytes.slice(at, at + 4), bits = classOf(written[0]!);
    const destination = { bytes: networkOf({ bytes: written, bits }), bits };
    if (written.every((byte) => byte === 0) || isForbidden(destination)) return undefined;
    routes.push({ destination, gateway: bytes.slice(at + 4, at + 8) });
  }
  return routes;
}

function classOf(first: number): number {
  return first < 128 ? 8 : first < 192 ? 16 : 24;
}

/** Part of what never leaves a host, or of what is no host's. */
function isForbidden({ bytes, bits }: Prefix): boolean {
  const first = bytes[0]!;
  return bits > 0 && (first === LOOPBACK || first >= MULTICAST);
}
