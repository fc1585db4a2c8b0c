/**
 * A watch of one key. A member that stands still, or that was cut off in silence, says nothing, and etcd 3.4 may leave out
 * what it has compacted without a word. So a watch is begun anew at the next endpoint again and again: that is the sign of
 * life, and spreads watches over the members.
 */
import { StoreSilent } from "../../cluster/effects.ts";
import { errorText, undefinedOnError } from "../../cni/error.ts";
import { delay, NOT_WANTED } from "../delay.ts";
import type { HttpStream } from "../http.ts";
import { atEndpoint, type Gateway } from "./gateway.ts";
import { cancellation, EndpointTrouble } from "./refusals.ts";

export interface WatchedKey {
  /** In base64. */
  key: string;
  changed: () => void;
  signal: AbortSignal;
  renewMs: number;
}

/** Returns why it has ended. */
export async function watchKey(gateway: Gateway, watched: WatchedKey): Promise<string> {
  const { signal, renewMs } = watched;
  let at = gateway.present, running: RunningWatch | undefined;
  try {
    while (!signal.aborted) {
      // The new one has begun before the old one ends: nothing happens unseen between them.
      const next = await beginAtAny(gateway, at, watched);
      running?.stop.abort();
      running = next;
      at = next.at + 1;
      const reason = await endWithin(running, renewMs * (0.92 + 0.16 * Math.random()));
      if (reason !== undefined && !signal.aborted) return reason;
    }
    return NOT_WANTED;
  } catch (error) {
    return signal.aborted ? NOT_WANTED : errorText(error);
  } finally {
    running?.stop.abort();
  }
}

interface RunningWatch {
  /** The endpoint's number. */
  at: number;
  /** With the reason. */
  ended: Promise<string>;
  stop: AbortController;
}

/** Undefined when it goes on. */
async function endWithin({ ended }: RunningWatch, ms: number): Promise<string | undefined> {
  const waiting = new AbortController();
  const reason = await Promise.race([ended, delay(ms, waiting.signal).then(() => undefined)]);
  waiting.abort();
  return reason;
}

async function beginAtAny(gateway: Gateway, first: number, watched: WatchedKey): Promise<RunningWatch> {
  const troubles: string[] = [];
  for (const [index, endpoint] of gateway.endpointsFrom(first).entries()) {
    try {
      return { at: first + index, ...await begin(gateway, endpoint, watched) };
    } catch (error) {
      if (!(error instanceof EndpointTrouble) || watched.signal.aborted) throw error;
      troubles.push(error.message);
    }
  }
  throw new StoreSilent(troubles.join("; "));
}

async function begin(gateway: Gateway, endpoint: string, { key, changed, signal }: WatchedKey) {
  const stop = new AbortController();
  const messages = await gateway.withToken(endpoint, async (token) => {
    const stream = await gateway.watch(endpoint, key, token, [signal, stop.signal]);
    const messages = messagesIn(gateway, endpoint, stream);
    // It says at once that it has begun, or why not: within the limit of a request.
    const { done } = await messages.next();
    if (done) throw new EndpointTrouble(`${endpoint}: etcd has ended the watch at once`);
    stream.goOn();
    return messages;
  });
  if (!signal.aborted) changed();
  return { stop, ended: follow(messages, endpoint, changed) };
}

async function follow(
  messages: AsyncGenerator<WatchMessage>,
  endpoint: string,
  changed: () => void,
): Promise<string> {
  try {
    for await (const { events } of messages) if (events !== undefined) changed();
    return `${endpoint}: etcd has ended the watch`;
  } catch (error) {
    return errorText(error);
  }
}

interface WatchMessage {
  canceled?: boolean;
  cancel_reason?: string;
  compact_revision?: string;
  events?: unknown[];
}

interface WatchLine {
  result?: WatchMessage;
  error?: { message?: string };
}

/** Throws EndpointTrouble, TokenTrouble and EtcdRefusal. */
async function* messagesIn(
  { conf }: Gateway,
  endpoint: string,
  { lines }: HttpStream,
): AsyncGenerator<WatchMessage, void> {
  const all = lines();
  try {
    for (let read = await atEndpoint(() => all.next()); !read.done; read = await atEndpoint(() => all.next())) {
      const { result, error }: WatchLine = undefinedOnError(() => JSON.parse(read.value)) ?? {};
      if (result === undefined) throw cancellation(error?.message ?? read.value.slice(0, 200), endpoint, conf);
      if (result.canceled) throw cancellation(reasonOf(result), endpoint, conf);
      yield result;
    }
  } finally {
    // After a cancellation, etcd keeps the connection, and says nothing.
    await all.return();
  }
}

function reasonOf({ cancel_reason, compact_revision }: WatchMessage): string {
  if (compact_revision === undefined) return cancel_reason ?? "without a reason";
  return `what happened up to revision ${compact_revision} has been compacted`;
}
