/**
 * The list of valid attachments for GC, undecoded (CNI spec 1.1.0, "GC: Clean up any stale resources"). The tagged text of
 * 1.1.0 calls it `cni.dev/attachments`; libcni writes both keys.
 */
import { field } from "./json.ts";

export const VALID_ATTACHMENTS = "cni.dev/valid-attachments";

export function validAttachmentsIn(document: Record<string, unknown>): unknown {
  const list = field(document, VALID_ATTACHMENTS);
  return list === undefined ? field(document, "cni.dev/attachments") : list;
}
