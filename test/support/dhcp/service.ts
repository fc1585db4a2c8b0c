/**
 * The DHCP service in a machine, and networks whose addresses it holds.
 *
 *     await using service = await startService(segment);
 *     const net = service.network({ type: "bridge", bridge: "br0" });
 *     await net.add(container);
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isListening } from "../listening.ts";
import type { Container } from "../machine.ts";
import { type Network, network } from "../network.ts";
import { patchbayPlugins } from "../plugins.ts";
import { untilTrue } from "../until-true.ts";
import type { Segment } from "./link.ts";
import type { Running } from "./running.ts";

type Conf = Record<string, unknown> & { type: string };

export interface ServiceOptions {
  /** After `dhcp daemon -socketpath … -datadir …`. */
  flags?: readonly string[];
  env?: Record<string, string>;
}

let count = 0;

export class Service implements AsyncDisposable {
  readonly socket: string;
  readonly directory: string;
  #running: Running | undefined;
  #log = "";

  constructor(readonly segment: Segment, private readonly options: ServiceOptions) {
    const folder = join(segment.folder, `service-${++count}`);
    this.socket = `${folder}.sock`;
    this.directory = folder;
  }

  async start(): Promise<void> {
    const { flags = [], env } = this.options;
    const command = [
      join(patchbayPlugins(), "dhcp"),
      "daemon",
      "-socketpath",
      this.socket,
      "-datadir",
      this.directory,
    ];
    this.#log = `${this.directory}-${++count}.log`;
    this.#running = this.segment.start(undefined, [...command, ...flags], { log: this.#log, env });
    const running = this.#running;
    await running.until(() => this.isListening());
  }

  private isListening(): boolean {
    return isListening(this, this.socket);
  }

  get pid(): number {
    return this.#running!.pid;
  }

  get hasEnded(): boolean {
    return this.#running?.hasEnded ?? true;
  }

  /** Since the last start. */
  log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  signal(name: NodeJS.Signals): void {
    this.#running!.signal(name);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.#running?.stop(signal);
  }

  async restart(signal?: NodeJS.Signals): Promise<void> {
    await this.stop(signal);
    await this.start();
  }

  /** Kinds of what its descriptors are: `net:` namespaces, sockets, files. */
  descriptors(): string[] {
    return readdirSync(`/proc/${this.pid}/fd`).map((fd) => {
      try {
        return String(Bun.spawnSync(["readlink", `/proc/${this.pid}/fd/${fd}`]).stdout).trim();
      } catch {
        return "";
      }
    });
  }

  records(): string[] {
    return existsSync(this.directory)
      ? readdirSync(this.directory).filter((name) => name.endsWith(".lease")).sort()
      : [];
  }

  ipam(change: Record<string, unknown> = {}): Record<string, unknown> {
    return { type: "dhcp", daemonSocketPath: this.socket, dataDir: this.directory, ...change };
  }

  /** On the segment's link, by the plugin that fits it unless another is named. */
  network(conf: Partial<Conf> = {}, ipam: Record<string, unknown> = {}): Network {
    const { link, machine } = this.segment;
    const usual: Conf = link === "br0" ? { type: "bridge", bridge: link } : { type: "macvlan", master: link };
    return network(machine, { ...usual, ...conf, ipam: this.ipam(ipam) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export async function startService(segment: Segment, options: ServiceOptions = {}): Promise<Service> {
  const service = new Service(segment, options);
  await service.start();
  return service;
}

export interface AddressOfLink {
  address: string;
  bits: number;
  /** Seconds; Infinity: for ever. */
  valid: number;
  preferred: number;
}

const FOREVER = 0xffffffff;

/** The addresses of the container's eth0, but not link-local ones. */
export async function addressesIn({ machine }: Segment, container: Container): Promise<AddressOfLink[]> {
  const [link] = JSON.parse(await machine.sh("ip -j address show dev eth0", { in: container }));
  return link.addr_info.filter(({ scope }: { scope: string }) => scope === "global").map((
    one: { local: string; prefixlen: number; valid_life_time: number; preferred_life_time: number },
  ) => ({
    address: one.local,
    bits: one.prefixlen,
    valid: one.valid_life_time === FOREVER ? Infinity : one.valid_life_time,
    preferred: one.preferred_life_time === FOREVER ? Infinity : one.preferred_life_time,
  }));
}

/** Waits until the container's addresses are right; answers them. */
export async function untilAddresses(
  segment: Segment,
  container: Container,
  isRight: (addresses: AddressOfLink[]) => boolean,
): Promise<AddressOfLink[]> {
  return await untilTrue(() => addressesIn(segment, container), isRight);
}

/** Waits until nothing of clients or containers is open: of sockets one to listen, of namespaces the service's own. */
export async function untilIdle(service: Service): Promise<void> {
  const isOf = (kind: string) => (one: string) => one.startsWith(kind);
  const look = () => service.descriptors().filter((one) => /^(socket|net|mnt):|hostname/.test(one));
  await untilTrue(look, (all) =>
    all.filter(isOf("socket")).length <= 1 && all.filter(isOf("net")).length <= 1 &&
    all.length <= 2);
}
