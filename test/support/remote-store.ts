/**
 * A store that is asked from within a machine, by a process of its own (store-host.ts): the runtime's thread for HTTP is in
 * the network in which its process began.
 */
import type { EtcdOptions } from "../../src/cluster-stores/etcd.ts";
import { type ClusterRecord, ForeignRecord, StoreSilent } from "../../src/cluster/effects.ts";
import type { StoreConf } from "../../src/cluster/configuration.ts";
import type { Stored } from "../../src/cluster/records.ts";
import type { ClusterStore, ListedRecords, RecordKind, StoreOutcome } from "../../src/cluster/store.ts";
import type { Container, Machine } from "./machine.ts";

export interface StoreOfHost {
  conf: StoreConf;
  /** etcd's. */
  options?: EtcdOptions;
}

/** What a line asks for. A record that came from there is a number. */
export type Asked =
  & { id: number }
  & (
    | { call: "read"; key: string }
    | { call: "list"; kind: RecordKind; pool?: string }
    | { call: "put"; key: string; was?: number | Stored<ClusterRecord>; value?: ClusterRecord }
    | { call: "watch"; key: string; isAborted: boolean }
    | { call: "end"; watch: number }
    | { call: "close" }
  );

export interface Told {
  id: number;
  isChanged?: true;
  answer?: unknown;
  /** With a key, it is a ForeignRecord. */
  error?: { message: string; key?: string };
}

export interface HostOptions {
  env?: Record<string, string>;
  in?: Container;
}

type Numbered = Stored<ClusterRecord> & { number: number };

/** The sentence of what a put, a read or a list has not done. */
export async function complaint(work: Promise<unknown>): Promise<string> {
  try {
    const outcome = await work as StoreOutcome;
    if (typeof outcome === "object" && "unknown" in outcome) return `unknown: ${outcome.unknown}`;
    if (typeof outcome === "object" && "refused" in outcome) return `refused: ${outcome.refused}`;
    return `none: ${JSON.stringify(outcome)}`;
  } catch (error) {
    return (error as Error).message;
  }
}

export class RemoteStore implements ClusterStore, AsyncDisposable {
  readonly isWritable = true;
  private readonly process: ReturnType<Machine["start"]>;
  private readonly waiting = new Map<number, { done(told: Told): void; changed?: () => void }>();
  private readonly numbers = new WeakMap<Stored<ClusterRecord>, number>();
  private asked = 0;

  constructor(machine: Machine, store: StoreOfHost, { env = {}, in: container }: HostOptions = {}) {
    const inside = container === undefined ? [] : ["nsenter", `--net=${container.netnsPath}`];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const program = [process.execPath, `${import.meta.dir}/store-host.ts`, JSON.stringify(store)];
    this.process = machine.start([...inside, "env", ...variables, ...program]);
    void this.listen();
  }

  get name(): string {
    return "a store of another process";
  }

  get pid(): number {
    return this.process.pid;
  }

  async read(key: string): Promise<Stored<ClusterRecord> | undefined> {
    return this.remembered(await this.ask<Numbered | undefined>({ call: "read", key }));
  }

  async list(kind: RecordKind, pool?: string): Promise<ListedRecords> {
    const listed = await this.ask<ListedRecords>({ call: "list", kind, ...pool !== undefined && { pool } });
    return { ...listed, records: listed.records.map((record) => this.remembered(record as Numbered)!) };
  }

  async put(
    key: string,
    was: Stored<ClusterRecord> | undefined,
    value: ClusterRecord | undefined,
  ): Promise<StoreOutcome> {
    const known = was && (this.numbers.get(was) ?? was);
    const outcome = await this.ask<StoreOutcome>({
      call: "put",
      key,
      ...known !== undefined && { was: known },
      ...value !== undefined && { value },
    });
    if (typeof outcome === "string" || !("won" in outcome)) return outcome;
    return { won: this.remembered(outcome.won as Numbered | undefined) };
  }

  watch(key: string, changed: () => void, signal: AbortSignal): Promise<string> {
    const ended = this.ask<string>({ call: "watch", key, isAborted: signal.aborted }, changed), watch = this.asked;
    // The process may end before it answers.
    signal.addEventListener("abort", () => void this.ask({ call: "end", watch }).catch(() => {}));
    return ended;
  }

  close(): void {
    void this.ask({ call: "close" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill("SIGKILL");
    await this.process.exited;
  }

  private ask<Answer>(call: WithoutId<Asked>, changed?: () => void): Promise<Answer> {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      const done = ({ answer, error }: Told) =>
        error === undefined ? resolve(answer as Answer) : reject(errorOf(error));
      this.waiting.set(id, { done, ...changed && { changed } });
      this.process.stdin.write(`${JSON.stringify({ id, ...call })}\n`);
      void this.process.stdin.flush();
    });
  }

  private async listen(): Promise<void> {
    let rest = "";
    const said = this.process.stdout.pipeThrough(new TextDecoderStream());
    for await (const text of said as unknown as AsyncIterable<string>) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.hear(JSON.parse(line));
    }
    const error = { message: `the process with the store has ended: ${await this.process.stderr.text()}` };
    for (const [id, { done }] of this.waiting) done({ id, error });
  }

  private hear(told: Told): void {
    const asked = this.waiting.get(told.id)!;
    if (told.isChanged) return asked.changed!();
    this.waiting.delete(told.id);
    asked.done(told);
  }

  private remembered(record: Numbered | undefined): Stored<ClusterRecord> | undefined {
    if (record === undefined) return undefined;
    const { number, ...own } = record;
    this.numbers.set(own, number);
    return own;
  }
}

type WithoutId<Call> = Call extends unknown ? Omit<Call, "id"> : never;

function errorOf({ message, key }: { message: string; key?: string }): Error {
  return key === undefined
    ? new StoreSilent(message)
    : new ForeignRecord(key, message.replace(/^.*? is no record: /, ""));
}
