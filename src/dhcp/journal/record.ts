/** What the journal keeps of a lease: enough to go on with it, to show it and to give it back. Pure. */
import type { Owner } from "../../contract/owner.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import type { Wishes } from "../wishes.ts";
import type { LeaseText } from "./lease-text.ts";

export interface LeaseRecord extends Owner {
  /** Raised when the form changes. */
  format: 1;
  netnsPath: string;
  /** Of the namespace: contract/host.ts. */
  cookie?: string;
  /** The link's hardware address. */
  mac: string;
  wishes: Wishes;
  bootId: string;
  v4?: V4Record;
  /** The link's MTU before we lowered it. */
  mtuBefore?: number;
}

export interface V4Record {
  lease: LeaseText;
  /** When the request for the lease was sent: seconds since boot, and since 1970. */
  since: number;
  sinceWall: number;
  /** The hardware address that the server's messages come from. */
  serverMac: string;
}

/** When the lease ends, in seconds since 1970. */
export function endOf({ sinceWall, lease }: V4Record): number {
  return sinceWall + (lease.lease ?? Infinity);
}

/** Throws when the text is none, or one of another form. */
export function readRecord(text: string): LeaseRecord {
  const record = parseDocument(text, "a record of the journal");
  if (!isObject(record)) throw new Error("not a record");
  if (record.format !== 1) throw new Error(`a record of format ${record.format}, which this version does not know`);
  const isWrong = (within: Record<string, unknown>, type: string, keys: readonly string[]) =>
    keys.find((key) => typeof within[key] !== type || within[key] === null);
  const { v4 } = record;
  const wrong = isWrong(record, "string", ["network", "containerId", "ifName", "netnsPath", "mac", "bootId"]) ??
    isWrong(record, "object", ["wishes"]) ??
    (isObject(v4) ? isWrong(v4, "number", ["since", "sinceWall"]) ?? isWrong(v4, "object", ["lease"]) : undefined);
  if (wrong !== undefined) throw new Error(`a record without ${wrong}`);
  return record as unknown as LeaseRecord;
}
