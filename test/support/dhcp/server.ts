/** A server that a test starts, stops, configures anew and reads the leases of. Its files stay while it is stopped. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { untilTrue } from "../until-true.ts";
import type { Lease, LeaseReader, LeaseState } from "./leases.ts";
import type { Site } from "./link.ts";
import type { Running } from "./running.ts";

/** One kind of server. All paths are in `folder`. */
export interface Kind<Offer> {
  name: string;
  /** Writes the configuration, and the lease file when the server wants to find one. Returns the command. */
  prepare(offer: Offer, files: Files, site: Site): string[];
  env?: (files: Files) => Record<string, string>;
  isReady: (running: Running) => boolean;
  /** None for servers without leases. */
  readLeases?: LeaseReader;
  /** Makes a server write the leases that it only has in memory. */
  writeLeases?: (running: Running) => void;
}

export interface Files {
  folder: string;
  config: string;
  leases: string;
  pid: string;
}

let count = 0;

export class Server<Offer> implements AsyncDisposable {
  readonly #kind: Kind<Offer>;
  readonly #site: Site;
  readonly #files: Files;
  #offer: Offer;
  #running: Running | undefined;

  private constructor(kind: Kind<Offer>, site: Site, offer: Offer) {
    const folder = join(site.segment.folder, `${kind.name}-${++count}`), file = (name: string) => join(folder, name);
    // radvd refuses files that others may change.
    mkdirSync(folder, { mode: 0o755 });
    this.#files = { folder, config: file("config"), leases: file("leases"), pid: file("pid") };
    this.#kind = kind;
    this.#site = site;
    this.#offer = offer;
  }

  static async open<Offer>(kind: Kind<Offer>, site: Site, offer: Offer): Promise<Server<Offer>> {
    const server = new Server(kind, site, offer);
    await server.start();
    return server;
  }

  get name(): string {
    return this.#kind.name;
  }

  /** `isEmpty`: it has forgotten all leases. Answers when it serves. */
  async start({ isEmpty = false } = {}): Promise<void> {
    if (this.#running?.hasEnded === false) throw new Error(`${this.name} runs already`);
    const files = this.#files, { segment, namespace } = this.#site;
    if (isEmpty) rmSync(files.leases, { force: true });
    rmSync(files.pid, { force: true });
    const command = this.#kind.prepare(this.#offer, files, this.#site);
    // What an earlier start wrote must not say that this one is ready.
    const log = join(files.folder, `log-${++count}`), env = this.#kind.env?.(files);
    this.#running = segment.start(namespace, command, { log, env, cwd: files.folder });
    const running = this.#running;
    await running.until(() => this.#kind.isReady(running));
  }

  /** SIGKILL shows what it had written by then. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.#running?.stop(signal);
  }

  /** Stops it, and starts it with another offer, by default with the leases that it has. */
  async reconfigure(change: Partial<Offer>, how: { isEmpty?: boolean } = {}): Promise<void> {
    await this.stop();
    this.#offer = { ...this.#offer, ...change };
    await this.start(how);
  }

  /** While it does not run: what it will find in its lease file. */
  changeLeases(change: (text: string) => string): void {
    writeFileSync(this.#files.leases, change(readFileSync(this.#files.leases, "utf8")));
  }

  /** Since the last start. */
  log(): string {
    return this.#running?.log() ?? "";
  }

  get pid(): number {
    return this.#running!.pid;
  }

  /** The leases as its lease file has them now. Servers write after they have answered, so wait for what must come. */
  async leases(): Promise<Lease[]> {
    const { readLeases, writeLeases } = this.#kind;
    if (readLeases === undefined) return [];
    if (this.#running?.hasEnded === false) writeLeases?.(this.#running);
    const read = () => {
      const bytes = existsSync(this.#files.leases) ? readFileSync(this.#files.leases) : new Uint8Array();
      return readLeases(bytes, Date.now() / 1000);
    };
    return (await untilTrue(read, (found) => found !== undefined))!;
  }

  /** Waits for a lease of this address, in that state. One that the file does not mention is free. */
  async untilLease(address: string, state: LeaseState): Promise<Lease> {
    const free: Lease = { address, state: "free", ends: 0 };
    const look = async () => (await this.leases()).find((one) => one.address === address) ?? free;
    return await untilTrue(look, (found) => found.state === state).catch((error) => {
      throw new Error(`${this.name}: ${error}\n${this.log()}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** A copy of a program: AppArmor's profiles are by path, and some forbid a server's own path to read temporary files. */
export function ownCopy(program: string, { folder }: Pick<Files, "folder">): string {
  const copy = join(folder, basename(program));
  if (!existsSync(copy)) copyFileSync(Bun.which(program, { PATH: SYSTEM_PATH })!, copy);
  return copy;
}

const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Empty, unless there is one. */
export function touch(path: string): void {
  writeFileSync(path, "", { flag: "a" });
}

export function write(path: string, lines: readonly string[]): void {
  writeFileSync(path, lines.join("\n") + "\n", { mode: 0o644 });
}
