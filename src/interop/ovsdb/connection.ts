/**
 * A connection to a database server of Open vSwitch (RFC 7047, section 4). What the server sends is bounded, in time and in
 * bytes, whatever it is.
 */
import { ECONNRESET, EPIPE, ETIMEDOUT, isErrno } from "../../ffi/errno.ts";
import { closeFile, writeAll } from "../../ffi/files.ts";
import { interruptionDescriptor, throwIfInterrupted } from "../../process/interruption.ts";
import { libc, retrying, utf8 } from "../../ffi/libc.ts";
import { beforeWaitingFor, patienceHereMs, patienceLeftMs, waitingFor } from "../../process/patience.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { Documents } from "./documents.ts";
import { connectToServer } from "./server-address.ts";
import { isRow, type OvsdbRow } from "./values.ts";

/** The server does not answer, or what answers is none. */
export class NoDatabase extends Error {}

/** Nobody waits for it twice in a call. */
export class SilentDatabase extends NoDatabase {}

/** The server has refused a transaction, which has changed nothing then. */
export class Refused extends Error {
  constructor(readonly reason: string, details: string) {
    super(details === "" ? reason : `${reason}: ${details}`);
  }
}

/** What one operation of a transaction answers. */
export interface OperationResult {
  readonly rows: readonly OvsdbRow[];
  readonly count: number;
  readonly uuid: unknown;
}

/** Changed rows by table and UUID: the tables and columns that `watch` named. */
export type Update = Readonly<Record<string, Readonly<Record<string, { new?: OvsdbRow }>>>>;

/**
 * All answers that a verb asks for, not what Open vSwitch makes of them. The server stops for seconds when it rewrites its
 * file.
 */
const PATIENCE_MS = 10_000;
/** The longest that a worker of a resident waits: with a thousand ports, Open vSwitch needs a tenth of a second for one more. */
const WORKER_PATIENCE_MS = 500;
/** Ten thousand ports are a third of it. */
const MOST_BYTES = 8 * 1024 * 1024;
const CHUNK_BYTES = 65_536;
/** So much of the server's reason is shown. */
const MOST_CHARACTERS = 200;
const DATABASE = "Open_vSwitch";

interface Message {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

export class OvsdbConnection {
  private readonly documents = new Documents();
  private readonly messages: Message[] = [];
  private readonly updates: Update[] = [];
  private received = 0;
  private requests = 0;
  private begun = performance.now();
  /** Updates come, whenever something changes. */
  isWatching = false;

  private constructor(
    private readonly fd: number,
    private readonly server: string,
    private isInterruptible: boolean,
  ) {}

  /** Throws SyscallError when nobody listens. `isInterruptible`: a signal to the runtime ends a wait. */
  static open(server: string, isInterruptible = false): OvsdbConnection {
    return new OvsdbConnection(connect(server), server, isInterruptible);
  }

  close(): void {
    closeFile(this.fd);
  }

  /**
   * For the next work of the same verb, as if it were new. False when it is none, because something is left to read: the
   * server may have ended, or have asked whether we are still here.
   */
  renew(isInterruptible: boolean): boolean {
    this.begun = performance.now();
    this.received = 0;
    this.isInterruptible = isInterruptible;
    return poll([{ fd: this.fd, events: POLLIN }], 0).size === 0;
  }

  /** All operations or none (RFC 7047, section 4.1.3). Throws Refused. */
  transact(...operations: readonly OvsdbRow[]): OperationResult[] {
    return resultsOf(this.call("transact", [DATABASE, ...operations]), operations);
  }

  /** From now on, changes of these columns of a table come as updates; what is there by now does not. */
  watch(columns: Readonly<Record<string, readonly string[]>>): void {
    const select = { initial: false, insert: false, delete: false, modify: true };
    const tables = Object.entries(columns).map(([table, columns]) => [table, [{ columns, select }]]);
    this.isWatching = true;
    this.call("monitor", [DATABASE, "", Object.fromEntries(tables)]);
  }

  /** The next change of what is watched; undefined when there is none in time. */
  nextUpdate(untilMs: number): Update | undefined {
    while (this.updates.length === 0) {
      if (!this.receive(untilMs)) return undefined;
    }
    return this.updates.shift();
  }

  private call(method: string, params: readonly unknown[]): unknown {
    return waitingFor(this.server, () => this.answer(method, params));
  }

  private answer(method: string, params: readonly unknown[]): unknown {
    const patienceMs = patienceLeftMs(this.server, PATIENCE_MS);
    if (patienceMs === 0) throw silent(this.server);
    const id = ++this.requests, deadline = performance.now() + patienceMs;
    this.send({ method, params, id }, patienceMs);
    for (;;) {
      const message = this.messages.shift();
      if (message === undefined) {
        if (!this.receive(deadline)) {
          throw silent(this.server);
        }
        continue;
      }
      if (message.id !== id) continue;
      if (message.error) throw new Refused(reasonOf(message.error), "");
      return message.result;
    }
  }

  private send(message: Message, patienceMs = PATIENCE_MS): void {
    try {
      writeAll(this.fd, utf8(JSON.stringify(message)), this.server, patienceMs);
    } catch (error) {
      if (isErrno(error, ETIMEDOUT)) throw silent(this.server);
      throw this.noDatabase(isEnd(error) ? ENDED : `takes no question: ${(error as Error).message}`);
    }
  }

  /** Waits for bytes, and sorts the messages that end in them. False when the time is over. */
  private receive(deadline: number): boolean {
    if (!this.isReady(deadline)) return false;
    const chunk = new Uint8Array(CHUNK_BYTES);
    let length: number;
    try {
      length = retrying("recvfrom", () => Number(libc.recvfrom(this.fd, chunk, chunk.length, 0, null, null)));
    } catch (error) {
      throw isEnd(error) ? this.noDatabase(ENDED) : error;
    }
    if (length === 0) throw this.noDatabase(ENDED);
    this.received += length;
    if (this.received > MOST_BYTES) throw this.noDatabase(`sends more than ${MOST_BYTES / 1024 / 1024} MiB`);
    let documents: unknown[];
    try {
      documents = this.documents.add(chunk.subarray(0, length));
    } catch {
      throw this.noDatabase("sends something that is no JSON-RPC");
    }
    for (const document of documents) this.sort(document as Message);
    return true;
  }

  private isReady(deadline: number): boolean {
    for (;;) {
      const now = performance.now(), brieflyUntil = this.begun + WORKER_PATIENCE_MS;
      if (now >= deadline) return false;
      if (now >= brieflyUntil) beforeWaitingFor("Open vSwitch");
      const until = now < brieflyUntil ? Math.min(brieflyUntil, deadline) : deadline;
      const signals = this.isInterruptible ? interruptionDescriptor() : -1;
      const ready = poll([this.fd, signals].map((fd) => ({ fd, events: POLLIN })), until - now);
      if (ready.has(signals)) throwIfInterrupted();
      if (ready.has(this.fd)) return true;
    }
  }

  private sort(message: Message): void {
    const { id, method, params } = message;
    // The server asks whether we are still here (RFC 7047, section 4.1.11).
    if (method === "echo") this.send({ id, result: params, error: null });
    else if (method === "update" && Array.isArray(params)) this.updates.push(asUpdate(params[1]));
    else if (method === undefined) this.messages.push(message);
  }

  private noDatabase(what: string): NoDatabase {
    return new NoDatabase(textOf(this.server, what));
  }
}

function textOf(server: string, what: string): string {
  return `the database of Open vSwitch at ${server} ${what}`;
}

function silent(server: string): SilentDatabase {
  return new SilentDatabase(textOf(server, `does not answer within ${PATIENCE_MS / 1000} s`));
}

const isEnd = (error: unknown) => isErrno(error, ECONNRESET, EPIPE);
const ENDED = "has ended";

/** A worker does not wait for a server that takes nobody. */
function connect(server: string): number {
  const patienceMs = patienceLeftMs(server, PATIENCE_MS);
  if (patienceMs === 0) throw silent(server);
  try {
    return waitingFor(server, () => connectToServer(server, patienceHereMs(patienceMs, WORKER_PATIENCE_MS)));
  } catch (error) {
    if (isErrno(error, ETIMEDOUT)) beforeWaitingFor("Open vSwitch");
    throw error;
  }
}

/** What has another form is not in it. */
function asUpdate(value: unknown): Update {
  return objectsIn(value, (table) => objectsIn(table, (row) => isRow(row.new) ? { new: row.new } : {}));
}

function objectsIn<T>(value: unknown, read: (inner: OvsdbRow) => T): Record<string, T> {
  const inner = Object.entries(isRow(value) ? value : {});
  return Object.fromEntries(inner.flatMap(([key, one]) => isRow(one) ? [[key, read(one)]] : []));
}

function resultsOf(result: unknown, operations: readonly OvsdbRow[]): OperationResult[] {
  if (!Array.isArray(result) || result.length < operations.length) throw noTransaction();
  const answers = result.map((one): OvsdbRow => isRow(one) ? one : {});
  for (const { error, details } of answers) {
    if (error) throw new Refused(reasonOf(error), typeof details === "string" ? details : "");
  }
  return operations.map(({ op }, index) => {
    const { rows = op === "select" ? undefined : [], count = 0, uuid } = answers[index]!;
    // Rows that are missing would be taken for removed.
    if (!Array.isArray(rows) || !rows.every(isRow)) throw noTransaction();
    return { rows, count: Number(count), uuid };
  });
}

function noTransaction(): Refused {
  return new Refused("the answer is no transaction's", "");
}

function reasonOf(error: unknown): string {
  const text = typeof error === "string" ? error : (error as { error?: unknown }).error;
  return typeof text === "string" ? text.slice(0, MOST_CHARACTERS) : "it does not say why";
}
