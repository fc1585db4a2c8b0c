/** TCP throughput between a container and its machine, measured by the receiver. */
import { resolve } from "node:path";
import type { Container, Machine } from "./machine.ts";

const FLOOD = [process.execPath, resolve(import.meta.dir, "flood.ts")];

export interface Measurement {
  /** The container's part. */
  verb: "receive" | "send";
  /** The machine's address. */
  address: string;
  /** First bytes that do not count: a bucket and the queues let them pass. */
  skip: number;
  windowMs: number;
}

export interface FloodServer extends AsyncDisposable {
  /** Returns bytes of payload a second. */
  measure(from: Container, measurement: Measurement): Promise<number>;
}

export async function floodServer(machine: Machine): Promise<FloodServer> {
  const process = machine.start([...FLOOD, "serve"]);
  const { value } = await process.stdout.getReader().read();
  const port = new TextDecoder().decode(value).trim();
  if (port === "") throw new Error(`no server: ${await process.stderr.text()}`);
  return {
    async measure(from, { verb, address, skip, windowMs }) {
      const command = [...FLOOD, verb, address, port, String(skip), String(windowMs)];
      const { code, stdout, stderr } = await machine.run(command, { in: from });
      if (code !== 0) throw new Error(`${verb} ${address}: exit ${code}: ${stderr}`);
      return Number(stdout);
    },
    async [Symbol.asyncDispose]() {
      await process.stdin.end();
      await process.exited;
    },
  };
}
