/** Watches of one object. Each ends soon: that the next one begins shows that the server is there. */
import { errorText } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import { recordName } from "../../cluster/decoding.ts";
import { NOT_WANTED } from "../delay.ts";
import type { KubernetesApi } from "./api.ts";
import { pathOf } from "./objects.ts";
import { apiRefusal } from "./refusals.ts";

/** With what is added at random, and the delay, within the time in which a node that is removed may object. */
const RENEWED_S = 70;
/** The server ends it in time, unless it is cut off. */
const LATE_MS = 3000;

/** Never throws. */
export async function watchObject(
  api: KubernetesApi,
  key: string,
  changed: () => void,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) return NOT_WANTED;
  const named = recordName(key);
  if (named === undefined) return `${key} is no key of a record`;
  const seconds = Math.round(RENEWED_S * (0.92 + 0.16 * Math.random())), late = new AbortController();
  const timer = setTimeout(() => late.abort(), seconds * 1000 + LATE_MS);
  // By its name alone, so that a server with many of them looks only for whom each change is.
  const path = `${pathOf(named.kind)}?watch=true&resourceVersion=0&timeoutSeconds=${seconds}` +
    `&fieldSelector=${encodeURIComponent(`metadata.name=${named.name}`)}`;
  try {
    const stream = await api.stream(path, [signal, late.signal]);
    if (!("documents" in stream)) return apiRefusal(stream);
    changed();
    for await (const event of stream.documents) {
      if (signal.aborted) break;
      if (isObject(event) && event["type"] === "ERROR") return `the server ended it: ${messageIn(event["object"])}`;
      changed();
    }
  } catch (error) {
    if (!signal.aborted && !late.signal.aborted) return errorText(error);
  } finally {
    clearTimeout(timer);
  }
  return signal.aborted ? NOT_WANTED : `its ${seconds} s were over`;
}

function messageIn(status: unknown): string {
  const { code, message } = isObject(status) ? status : {};
  return `${code} ${message}`;
}
