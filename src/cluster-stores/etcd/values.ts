/** Records as etcd keeps them: a JSON text at the prefix and the record's key. */
import { recordFrom } from "../../cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord } from "../../cluster/effects.ts";
import type { Stored } from "../../cluster/records.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";

/** As the gateway writes it: numbers are texts, bytes are base64, and what is empty is missing. */
export interface KeyValue {
  key: string;
  value?: string;
  create_revision: string;
  mod_revision: string;
}

const VALUE_LIMIT_BYTES = 64 * 1024;

/** The bytes in etcd, to compare with: they may have fields that are not known here, or others' spaces. */
const bytesOf = new WeakMap<Stored<ClusterRecord>, string>();

/** Throws ForeignRecord. */
export function storedFrom(key: string, found: KeyValue): Stored<ClusterRecord> {
  const version = revisionFrom(found.mod_revision), birth = found.create_revision;
  return remembered(
    { key, value: valueFrom(key, found.value ?? ""), version, birth, isGoing: false },
    found.value ?? "",
  );
}

/** The record once it is written. Throws ForeignRecord for what would not be read again. */
export function writable(key: string, value: ClusterRecord) {
  const bytes = utf8(JSON.stringify(value)).toBase64(), read = valueFrom(key, bytes);
  const written = (version: number, birth: string) =>
    remembered({ key, value: read, version, birth, isGoing: false }, bytes);
  return { bytes, written };
}

/** In base64. A record that was not read from here has the bytes that would be written. */
export function valueBytes(record: Stored<ClusterRecord>): string {
  return bytesOf.get(record) ?? utf8(JSON.stringify(record.value)).toBase64();
}

export function keyBytes(text: string): string {
  return utf8(text).toBase64();
}

/** The key behind the prefix. */
export function keyFrom(prefix: string, { key }: KeyValue): string {
  return fromUtf8(Uint8Array.fromBase64(key)).slice(prefix.length);
}

/** Undefined where it is missing, as 0 is. */
export function revisionFrom(text: string | undefined): number {
  return Number(text ?? 0);
}

function remembered(record: Stored<ClusterRecord>, bytes: string): Stored<ClusterRecord> {
  bytesOf.set(record, bytes);
  return record;
}

function valueFrom(key: string, base64: string): ClusterRecord {
  const bytes = Uint8Array.fromBase64(base64);
  if (bytes.length > VALUE_LIMIT_BYTES) {
    throw new ForeignRecord(key, `it is larger than ${VALUE_LIMIT_BYTES >> 10} KB`);
  }
  return recordFrom(key, jsonFrom(key, bytes));
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function jsonFrom(key: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new ForeignRecord(key, "it is no JSON");
  }
}
