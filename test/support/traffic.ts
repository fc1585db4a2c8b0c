/**
 * Packets between namespaces of one machine. A server answers each client with the client's address as the server sees
 * it, which shows masquerading.
 */
import { resolve } from "node:path";
import { patienceMs } from "./patience.ts";
import type { Container, Machine } from "./machine.ts";

const TALKER = [process.execPath, resolve(import.meta.dir, "talker.ts")];

export async function ping(machine: Machine, from: Container | undefined, address: string): Promise<boolean> {
  return (await machine.run(["ping", "-nc1", ...patiently(), address], { in: from })).code === 0;
}

/** Options of ping(8): how long to wait for an answer. */
export function patiently(): string[] {
  return ["-W", String(Math.ceil(patienceMs() / 1000))];
}

export const allProtocols = ["tcp", "udp", "sctp"] as const;
export type Protocol = typeof allProtocols[number];

/** A question for three-protocols.ts to ask. */
export interface Question {
  protocol: Protocol;
  address: string;
  port: number;
  /** Only for UDP and SCTP. */
  sourcePort?: number;
}

export interface Server extends AsyncDisposable {
  readonly port: number;
  /** Returns the address that the server saw, or undefined without an answer. `port` may be another one that leads to it. */
  ask(from: Container | undefined, address: string, port?: number, sourcePort?: number): Promise<string | undefined>;
  /** The same for several places at once. Lists each protocol's answer when they differ. */
  askAll(from: Container | undefined, places: readonly Place[]): Promise<(string | undefined)[]>;
}

/** An address and a port, by default the server's. */
export type Place = readonly [address: string, port?: number];

export async function serve(
  machine: Machine,
  on: Container | undefined,
  protocol: Protocol | "all",
  wantedPort = 0,
): Promise<Server> {
  const protocols = protocol === "all" ? allProtocols : [protocol];
  const enter = on === undefined ? [] : ["nsenter", `--net=${on.netnsPath}`];
  const process = machine.start([...enter, ...TALKER, "serve", protocols.join(), String(wantedPort)]);
  const { value } = await process.stdout.getReader().read();
  const printed = new TextDecoder().decode(value).trim();
  if (printed === "") throw new Error(`no server: ${await process.stderr.text()}`);
  const ownPort = Number(printed);

  async function askAll(from: Container | undefined, places: readonly Place[], sourcePort?: number) {
    const questions = places.flatMap(([address, port = ownPort]) =>
      protocols.map((protocol): Question => ({ protocol, address, port, sourcePort }))
    );
    const { code, stdout, stderr } = await machine.run([...TALKER, "ask", JSON.stringify(questions)], { in: from });
    if (code !== 0) throw new Error(`the talker failed: ${stderr}`);
    const answers = JSON.parse(stdout) as (string | null)[];
    return places.map((_, index) => {
      const own = answers.slice(index * protocols.length, (index + 1) * protocols.length);
      if (own.every((answer) => answer === own[0])) return own[0] ?? undefined;
      return own.map((answer, which) => `${protocols[which]}: ${answer ?? "nothing"}`).join(", ");
    });
  }
  return {
    port: ownPort,
    askAll: (from, places) => askAll(from, places),
    async ask(from, address, port, sourcePort) {
      return (await askAll(from, [[address, port]], sourcePort))[0];
    },
    async [Symbol.asyncDispose]() {
      await process.stdin.end();
      await process.exited;
    },
  };
}
