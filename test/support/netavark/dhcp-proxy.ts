/** `netavark dhcp-proxy` on the network of a DHCP test, and calls of it as netavark makes them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isListening } from "../dhcp/service.ts";
import type { Segment } from "../dhcp/link.ts";
import type { Running } from "../dhcp/running.ts";
import type { Container } from "../machine.ts";
import { netavarkProgram } from "./netavark.ts";

const CLIENT = resolve(import.meta.dir, "grpc-client.ts");
let count = 0;

/** The proxy's words for what a container has. */
export interface ProxyAnswer {
  /** Of gRPC; -1 when the proxy went away. */
  status: number;
  message: string;
  lease?: Record<number, (string | number)[]>;
}

export class DhcpProxy {
  readonly directory: string;
  #running: Running | undefined;

  constructor(readonly segment: Segment, private readonly options: readonly string[] = ["-a", "0"]) {
    this.directory = join(segment.folder, `proxy-${++count}`);
  }

  get socket(): string {
    return `${this.directory}/nv-proxy.sock`;
  }

  get running(): Running {
    return this.#running!;
  }

  async start(): Promise<this> {
    const command = [netavarkProgram(), "dhcp-proxy", "-d", this.directory, ...this.options];
    const log = `${this.directory}-${++count}.log`;
    const running = this.#running = this.segment.start(undefined, command, { log, env: { RUST_LOG: "info" } });
    // The file of leases is written once more before the first call is taken.
    await running.until(() => isListening(running.pid, this.socket));
    await this.call("Teardown", { 3: "02:00:00:00:00:00" });
    return this;
  }

  /** Answers the process's exit status. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    await this.running.stop(signal);
    return this.running.exitCode;
  }

  /** The file of leases: by hardware address, a list with one. */
  // deno-lint-ignore no-explicit-any
  leases(): Record<string, any[]> | undefined {
    const path = `${this.directory}/nv-proxy.lease`;
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  }

  /** The journal's records. */
  records(): string[] {
    return readdirSync(`${this.directory}/nv-proxy.journal`).filter((name) => name.endsWith(".lease"));
  }

  async config(container: Container, more: Record<number, string | number> = {}): Promise<Record<number, unknown>> {
    const { machine } = this.segment;
    const [{ address: mac }] = JSON.parse(await machine.sh("ip -j link show dev eth0", { in: container }));
    return {
      1: "br0",
      2: "eth0",
      3: mac,
      5: "larder",
      7: container.netnsPath,
      8: `id-of-${container.name}`,
      ...more,
    };
  }

  async call(method: "Setup" | "Teardown" | "Clean", fields: object = {}): Promise<ProxyAnswer> {
    const command = [process.execPath, CLIENT, this.socket, method, JSON.stringify(fields)];
    return JSON.parse((await this.segment.machine.run(command)).stdout);
  }
}

export async function startProxy(segment: Segment, options?: readonly string[]): Promise<DhcpProxy> {
  return await new DhcpProxy(segment, options).start();
}
