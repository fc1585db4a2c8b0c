/** An IPv6 lease as JSON, like lease-text.ts. Pure. */
import { isObject } from "../../../cni/json.ts";
import { formatAddress, parseAddress } from "../../../net/address.ts";
import type { Offered6 } from "../v6/lease/lease.ts";
import { finite, must, requireTexts, requireTimes } from "./lease-text.ts";

/** Times in seconds; null is for ever. */
export interface LeaseText6 {
  address: string;
  /** Its DUID in hexadecimal digits. */
  server: string;
  preferred: number | null;
  valid: number | null;
  renew: number | null;
  rebind: number | null;
  nameServers: string[];
  search: string[];
  timeServers: string[];
}

export function leaseTextOf6({ binding, server, nameServers, search, timeServers }: Offered6): LeaseText6 {
  const { address, preferred, valid, renew, rebind } = binding;
  return {
    address: formatAddress(address),
    server: server.toHex(),
    preferred: finite(preferred),
    valid: finite(valid),
    renew: finite(renew),
    rebind: finite(rebind),
    nameServers: nameServers.map(formatAddress),
    search,
    timeServers: timeServers.map(formatAddress),
  };
}

/** Throws when the text is not what `leaseTextOf6` writes. */
export function leaseOf6(text: LeaseText6): Offered6 {
  const { preferred, valid, renew, rebind } = text;
  const address = parseAddress(text.address);
  if (address?.length !== 16) throw new Error("a lease with a malformed address");
  return {
    server: Uint8Array.fromHex(text.server),
    preference: 0,
    status: { code: 0, text: "" },
    binding: {
      address,
      preferred: preferred ?? Infinity,
      valid: valid ?? Infinity,
      renew: renew ?? Infinity,
      rebind: rebind ?? Infinity,
    },
    withdrawn: [],
    nameServers: text.nameServers.map((one) => must(parseAddress(one))),
    search: text.search,
    timeServers: text.timeServers.map((one) => must(parseAddress(one))),
    ignored: [],
  };
}

/** Throws when it is something else: it comes from a file, or from another process. */
export function requireLease6(value: unknown): asserts value is LeaseText6 {
  if (!isObject(value)) throw new Error("a lease that is no object");
  requireTimes(value, ["preferred", "valid", "renew", "rebind"]);
  for (const key of ["nameServers", "search", "timeServers"]) requireTexts(value[key], key);
  leaseOf6(value as unknown as LeaseText6);
}
