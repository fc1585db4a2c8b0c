/**
 * Attachments that come and go, as the result cache shows them: every program that runs networks with libcni writes it,
 * and so do we. Each change of a file is followed by reading it, so an attachment that comes and goes before that is
 * missed.
 */
import { type FSWatcher, watch } from "node:fs";
import { CniError, IO_FAILURE } from "../../cni/error.ts";
import type { Result } from "../../cni/result.ts";
import { newestResult, readPluginResult, resultDocument } from "../../cni/result-versions.ts";
import { closeFile, idAt, identify, makeDirectories, O_DIRECTORY, O_PATH, openFile } from "../../ffi/files.ts";
import { cacheFiles, type CacheRecord, readCacheFile } from "../../runtime/cache.ts";
import { ArgumentError } from "./argument-error.ts";
import { knownKeys } from "./given.ts";

export interface NetworkEvent {
  readonly type: "added" | "deleted";
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  /** The result of `add` in the form of CNI 1.1; undefined when the record has no readable one. */
  readonly result?: Result;
}

export interface EventOptions {
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Begins with an event for each attachment that is there. */
  readonly existing?: boolean;
}

export function eventsOf(cacheDirectory: string, options: EventOptions): AsyncIterableIterator<NetworkEvent> {
  const { signal, existing } = knownKeys("options", options, ["signal", "existing"]);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new ArgumentError("options.signal", signal, "must be an AbortSignal");
  }
  if (existing !== undefined && typeof existing !== "boolean") {
    throw new ArgumentError("options.existing", existing, "must be true or false");
  }
  return new Events(cacheDirectory, existing === true, signal);
}

const RESULTS = "results";
/** The runtime drops an event that is like the one before and comes less than two milliseconds later. */
const AGAIN_MS = 10;

type Waiting = { resolve(result: IteratorResult<NetworkEvent>): void; reject(error: unknown): void };

class Events implements AsyncIterableIterator<NetworkEvent> {
  private readonly seen: NetworkEvent[] = [];
  private readonly waiting: Waiting[] = [];
  /** What is attached, by the name of its file. */
  private readonly known = new Map<string, { text: string; event: NetworkEvent }>();
  private readonly watchers: FSWatcher[] = [];
  /** The directory that is watched: while it is open, no other that takes its place has its number. */
  private watched: number | undefined;
  private hasEnded = false;
  private failure: unknown;

  constructor(private readonly directory: string, reportsExisting: boolean, private readonly signal?: AbortSignal) {
    this.start();
    this.readAll(reportsExisting);
    if (signal?.aborted) this.end();
    else signal?.addEventListener("abort", this.end);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<NetworkEvent>> {
    const event = this.seen.shift();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) return Promise.reject(failure);
    if (this.hasEnded) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<NetworkEvent>> {
    this.seen.length = 0;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Events that came before are still delivered. */
  private readonly end = (): void => {
    this.hasEnded = true;
    this.stop();
    this.signal?.removeEventListener("abort", this.end);
    for (const { resolve } of this.waiting.splice(0)) resolve({ done: true, value: undefined });
  };

  private fail(error: unknown): void {
    const first = this.waiting.shift();
    if (first === undefined) this.failure = error;
    else first.reject(error);
    this.end();
  }

  private start(): void {
    const path = `${this.directory}/${RESULTS}`;
    try {
      makeDirectories(path);
      this.watched = openFile(path, O_PATH | O_DIRECTORY);
      this.watch(path, (name) => this.changed(name));
      // Its own removal shows only here.
      this.watch(this.directory, (name) => name === RESULTS && this.changed(null));
    } catch (error) {
      this.stop();
      throw unwatchable(path, error);
    }
  }

  private watch(path: string, changed: (name: string | null) => void): void {
    const watcher = watch(path, (_, name) => changed(name));
    watcher.on("error", (error) => this.fail(unwatchable(path, error)));
    this.watchers.push(watcher);
  }

  private stop(): void {
    for (const watcher of this.watchers.splice(0)) watcher.close();
    if (this.watched !== undefined) closeFile(this.watched);
    this.watched = undefined;
  }

  private changed(name: string | null): void {
    this.look(name);
    setTimeout(() => this.look(name), AGAIN_MS).unref();
  }

  private look(name: string | null): void {
    if (this.hasEnded) return;
    try {
      if (idAt(`${this.directory}/${RESULTS}`) !== identify(this.watched!).id) {
        this.stop();
        this.start();
        this.readAll(true);
      } else if (name === null) this.readAll(true);
      else this.readOne(name, true);
    } catch (error) {
      this.fail(error);
    }
  }

  private readAll(reports: boolean): void {
    for (const name of new Set([...this.known.keys(), ...cacheFiles(this.directory)])) this.readOne(name, reports);
  }

  private readOne(name: string, reports: boolean): void {
    const record = readCacheFile(this.directory, name), text = JSON.stringify(record);
    const before = this.known.get(name);
    if (before?.text === text) return;
    this.known.delete(name);
    if (before !== undefined && reports) this.report({ ...before.event, type: "deleted" });
    if (record === undefined) return;
    const event = eventOf(record);
    this.known.set(name, { text, event });
    if (reports) this.report(event);
  }

  private report(event: NetworkEvent): void {
    const first = this.waiting.shift();
    if (first === undefined) this.seen.push(event);
    else first.resolve({ done: false, value: event });
  }
}

function eventOf({ network, containerId, ifName, netnsPath, result }: CacheRecord): NetworkEvent {
  const event = { type: "added", network, containerId, ifName, netns: netnsPath } as const;
  try {
    if (result === undefined) return event;
    const newest = newestResult(readPluginResult(result, ""));
    return { ...event, result: resultDocument({ family: "1.0", result: newest }) as unknown as Result };
  } catch {
    return event;
  }
}

function unwatchable(path: string, error: unknown): CniError {
  return new CniError(IO_FAILURE, `cannot watch ${path}: ${(error as Error).message}`, "", { cause: error });
}
