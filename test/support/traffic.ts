/**
 * Packets between namespaces of one machine. A server answers each caller with the address it sees it under, which
 * is how masquerading shows.
 */
import { resolve } from "node:path";
import type { Container, Machine } from "./machine.ts";

const TALKER = [process.execPath, resolve(import.meta.dir, "talker.ts")];

export async function ping(machine: Machine, from: Container | undefined, address: string): Promise<boolean> {
  return (await machine.run(["ping", "-n", "-c", "1", "-W", "1", address], { in: from })).code === 0;
}

export interface Server extends AsyncDisposable {
  readonly port: number;
  /** The address the server saw, or undefined when no answer came. Another port may lead to it. `sourcePort` is UDP's. */
  ask(from: Container | undefined, address: string, port?: number, sourcePort?: number): Promise<string | undefined>;
}

export async function serve(machine: Machine, on: Container | undefined, protocol: "tcp" | "udp"): Promise<Server> {
  const enter = on === undefined ? [] : ["nsenter", `--net=${on.netnsPath}`];
  const process = machine.start([...enter, ...TALKER, "serve", protocol]);
  const { value } = await process.stdout.getReader().read();
  const printed = new TextDecoder().decode(value).trim();
  if (printed === "") throw new Error(`no server: ${await process.stderr.text()}`);
  return {
    port: Number(printed),
    async ask(from, address, port = Number(printed), sourcePort = 0) {
      const question = ["ask", protocol, address, String(port), String(sourcePort)];
      const { code, stdout } = await machine.run([...TALKER, ...question], { in: from });
      return code === 0 ? stdout : undefined;
    },
    async [Symbol.asyncDispose]() {
      await process.stdin.end();
      await process.exited;
    },
  };
}
