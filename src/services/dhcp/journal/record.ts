/** What the journal keeps of a lease: enough to go on with it, to show it and to release it. Pure. */
import type { Owner } from "../../../contract/owner.ts";
import { isObject, parseDocument } from "../../../cni/json.ts";
import { parseMac } from "../../../net/mac.ts";
import { type LeaseOptions, readLeaseOptions } from "../lease-options.ts";
import { type LeaseText, requireLease, requireTimes } from "./lease-text.ts";
import { type LeaseText6, requireLease6 } from "./lease-text6.ts";

/** Raised when an older version could not read what is written (docs/versions.md). */
const FORMAT = 1;

export interface LeaseRecord extends Owner {
  format: typeof FORMAT;
  netnsPath: string;
  /** The namespace's cookie: contract/host.ts. */
  cookie?: string;
  /** The link's hardware address. */
  mac: string;
  wishes: LeaseOptions;
  bootId: string;
  v4?: V4Record;
  v6?: V6Record;
}

/** Now, in seconds since boot and since 1970. */
export interface Clock {
  boot: number;
  wall: number;
}

/** When the request for a lease was sent, on both clocks. */
export interface Stamps {
  since: number;
  sinceWall: number;
}

export interface V4Record extends Stamps {
  lease: LeaseText;
  /** The hardware address that the server's messages come from. */
  serverMac: string;
  /** The server of the first lease, for which ADD waited. Later leases may come from a faster server. */
  origin?: { server: string; mac: string };
}

export interface V6Record extends Stamps {
  lease: LeaseText6;
  /** The link's own address, in hexadecimal digits; empty before it is known. */
  linkLocal: string;
}

/** The stamps of a lease that has ended. */
export const LONG_AGO: Stamps = { since: 0, sinceWall: 0 };

export function stampsOf(since: number, { boot, wall }: Clock): Stamps {
  return { since, sinceWall: wall - (boot - since) };
}

/** When the lease began, on the clock of this boot. */
export function beginningOf({ since, sinceWall }: Stamps, isSameBoot: boolean, { boot, wall }: Clock): number {
  return isSameBoot ? since : boot - Math.max(0, wall - sinceWall);
}

/** When the last of the leases ends, in seconds since 1970. */
export function endOfLeases({ v4, v6 }: Pick<LeaseRecord, "v4" | "v6">): number {
  const of4 = v4 === undefined ? 0 : v4.sinceWall + (v4.lease.lease ?? Infinity);
  return Math.max(of4, v6 === undefined ? 0 : v6.sinceWall + (v6.lease.valid ?? Infinity));
}

/** The record is in a format that only a newer version knows. */
export class NewerRecord extends Error {}

/** Throws when the text is no record, or has another form. */
export function readRecord(text: string): LeaseRecord {
  const record = parseDocument(text, "a record of the journal");
  if (!isObject(record)) throw new Error("not a record");
  const { format } = record;
  if (typeof format === "number" && format > FORMAT) throw new NewerRecord(`a record of format ${format}`);
  if (format !== FORMAT) throw new Error(`a record of format ${format}, which this version does not know`);
  requireStrings(record, ["network", "containerId", "ifName", "netnsPath", "mac", "bootId"]);
  if (parseMac(record.mac as string) === undefined) throw new Error("a record with a malformed mac");
  readLeaseOptions(record.wishes);
  const { v4, v6 } = record as { v4?: V4Record; v6?: V6Record };
  if (v4 !== undefined) {
    requireStrings(v4, ["serverMac"]);
    if (v4.origin !== undefined) requireStrings(v4.origin, ["server", "mac"]);
    requireTimes(v4, ["since", "sinceWall"]);
    requireLease(v4.lease);
  }
  if (v6 !== undefined) {
    requireTimes(v6, ["since", "sinceWall"]);
    requireLease6(v6.lease);
    Uint8Array.fromHex(v6.linkLocal);
  }
  return record as unknown as LeaseRecord;
}

function requireStrings(within: object, keys: readonly string[]): void {
  const wrong = keys.find((key) => typeof (within as Record<string, unknown>)[key] !== "string");
  if (wrong !== undefined) throw new Error(`a record without ${wrong}`);
}
