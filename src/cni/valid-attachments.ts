/**
 * The list that GC gets, as it was written (CNI spec 1.1.0, "GC: Clean up any stale resources"). In the text that was
 * tagged 1.1.0 it is called `cni.dev/attachments`; libcni writes both.
 */
import { field } from "./json.ts";

export const VALID_ATTACHMENTS = "cni.dev/valid-attachments";

export function validAttachmentsIn(document: Record<string, unknown>): unknown {
  const list = field(document, VALID_ATTACHMENTS);
  return list === undefined ? field(document, "cni.dev/attachments") : list;
}
