/**
 * Between a plugin and the database server of Open vSwitch: passes their messages on, and at one of them does what the
 * test wants. It listens in the machine, and runs in the test's process.
 *
 *     await using proxy = await openProxy(machine, "/run/between.sock", ovs.socket);
 *     proxy.at = ({ number }) => number === 4 ? "cut" : "pass";
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { Documents } from "../../src/interop/ovsdb/documents.ts";
import type { Machine } from "./machine.ts";

export interface Passing {
  /** From 1, over all connections. */
  number: number;
  from: "plugin" | "server";
  // deno-lint-ignore no-explicit-any
  message: any;
}

/** Instead of the message: both connections end, nothing comes any more, or the plugin hears something else. */
export type Treatment = "pass" | "cut" | "stall" | { says: string };

interface Line {
  plugin: Socket;
  server: Socket;
  isStalled: boolean;
}

export class OvsdbProxy implements AsyncDisposable {
  readonly heard: Passing[] = [];
  at: (passing: Passing) => Treatment | Promise<Treatment> = () => "pass";
  private readonly listening: Server;
  private readonly open = new Set<Socket>();

  constructor(private readonly target: string, readonly socketFile: string) {
    this.listening = createServer((plugin) => this.join(plugin));
  }

  async listen(path: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.listening.once("error", reject).listen(path, () => resolve());
    await promise;
  }

  private join(plugin: Socket): void {
    const line = { plugin, server: connect(this.target), isStalled: false };
    for (const from of ["plugin", "server"] as const) {
      const documents = new Documents();
      let last = Promise.resolve();
      this.open.add(line[from]);
      line[from].on("data", (chunk: Buffer) => {
        for (const message of documents.add(chunk)) last = last.then(() => this.pass(line, { from, message }));
      });
      // What cannot be written any more is lost, as the test wants it.
      line[from].on("error", () => {}).on("close", () => {
        this.open.delete(line[from]);
        if (from === "plugin") line.server.destroy();
        else last.then(() => line.isStalled || line.plugin.destroy());
      });
    }
  }

  private async pass(line: Line, { from, message }: Omit<Passing, "number">): Promise<void> {
    if (line.isStalled) return;
    const passing = { number: this.heard.length + 1, from, message };
    this.heard.push(passing);
    const treatment = await this.at(passing);
    if (treatment === "pass") line[from === "plugin" ? "server" : "plugin"].write(JSON.stringify(message));
    else if (treatment === "stall") line.isStalled = true;
    else if (treatment === "cut") line.plugin.destroy();
    else line.plugin.write(treatment.says);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.open) socket.destroy();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.listening.close(() => resolve());
    await promise;
  }
}

export async function openProxy(machine: Machine, path: string, target: string): Promise<OvsdbProxy> {
  const inMachine = (inside: string) => `/proc/${machine.pid}/root${inside}`;
  const proxy = new OvsdbProxy(inMachine(target), `unix:${path}`);
  await proxy.listen(inMachine(path));
  return proxy;
}
