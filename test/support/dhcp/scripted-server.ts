/**
 * A DHCPv4 server that does what a test says, right or wrong, and tells what it was asked.
 *
 *     const server = await serveScript(segment.site, { address: "192.168.77.50", rules: { DISCOVER: [SILENT, {}] } });
 *     server.tell({ address: "192.168.77.50", rules: { RENEW: { nak: "no" } } });
 *     await server.until((received) => received.some(({ asked }) => asked === "RENEW"));
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { untilTrue } from "../until-true.ts";
import type { Site } from "./link.ts";
import type { MessageName } from "./message-name.ts";
import type { Running } from "./running.ts";
import type { Asked, Rule, Script } from "./script.ts";

export interface Received {
  /** Unix milliseconds. */
  time: number;
  kind: MessageName;
  asked: Asked;
  /** The sender's address in the IP packet. */
  source: string;
  sourcePort: number;
  ciaddr: string;
  giaddr: string;
  mac: string;
  xid: number;
  secs: number;
  broadcast: boolean;
  /** In hex. */
  options: Record<number, string>;
}

/** What was asked, in order. What is repeated, because an answer was slow, counts once. */
export function kindsOf(received: readonly Received[]): Asked[] {
  return received.map(({ asked }) => asked).filter((asked, index, all) => asked !== all[index - 1]);
}

export const SILENT: Rule = { silent: true };

const PROGRAM = resolve(import.meta.dir, "scripted-process.ts");

let count = 0;

export class ScriptedServer implements AsyncDisposable {
  readonly #site: Site;
  readonly #folder: string;
  #running: Running | undefined;
  #script: Script;
  #told = 0;

  constructor(site: Site, script: Script) {
    this.#site = site;
    this.#folder = join(site.segment.folder, `scripted-${++count}`);
    mkdirSync(this.#folder);
    this.#script = script;
    this.tell(script);
  }

  /** Counts for all messages that arrive from now on. Clients and rules are counted anew. */
  tell(script: Script): void {
    this.#script = script;
    const path = join(this.#folder, "script"), next = `${path}.next`;
    writeFileSync(next, JSON.stringify({ told: ++this.#told, script }));
    renameSync(next, path);
  }

  /** The script with something changed. */
  change(change: Partial<Script>): void {
    this.tell({ ...this.#script, ...change });
  }

  async start(): Promise<void> {
    const { segment, namespace, address } = this.#site, file = (name: string) => join(this.#folder, name);
    const command = [process.execPath, PROGRAM, file("script"), file("received"), address];
    const running = segment.start(namespace, command, { log: file(`log-${++count}`) });
    this.#running = running;
    await running.until(() => running.log().includes("serves"));
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }

  /** Everything so far, also from before it was stopped. What the kernel dropped is not in it; see capture.ts. */
  received(): Received[] {
    const path = join(this.#folder, "received");
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
    // After the last end of a line there is nothing, or half a line.
    return lines.slice(0, -1).map((line) => JSON.parse(line));
  }

  /** Waits until it has received what `isRight` says; answers all of it. */
  async until(isRight: (received: Received[]) => boolean): Promise<Received[]> {
    return await untilTrue(() => this.received(), isRight);
  }

  /** What it could not read or send. */
  log(): string {
    return this.#running?.log() ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export async function serveScript(site: Site, script: Script): Promise<ScriptedServer> {
  const server = new ScriptedServer(site, script);
  await server.start();
  return server;
}
