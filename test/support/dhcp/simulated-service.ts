/** The service in simulated time, with its journal in a directory: what it is asked, and what it does on simulated links. */
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setSystemTime, spyOn } from "bun:test";
import type { Daemon } from "../../../src/services/daemon/daemon.ts";
import { Journal } from "../../../src/services/dhcp/journal/journal.ts";
import type { LeaseOptions } from "../../../src/services/dhcp/lease-options.ts";
import type { Answer, ServiceRequest } from "../../../src/services/dhcp/service-protocol.ts";
import * as clients from "../../../src/services/dhcp/service/clients.ts";
import { Service, type ServiceSettings } from "../../../src/services/dhcp/service/service.ts";
import { Alarm } from "../../../src/ffi/clock.ts";
import { owner, usualOptions } from "./lease-record.ts";
import { SimulatedLink } from "./simulated-link.ts";
import type { Script } from "./script.ts";

const usualSettings: ServiceSettings = {
  hostPrefix: "",
  broadcast: false,
  timeout: undefined,
  longestPause: undefined,
  patience: undefined,
  idleAfter: undefined,
};

/** Seconds since 1970, at 0 of the clock. */
export const BOOTED = 1_700_000_000;

let count = 0;

export class SimulatedService implements Disposable {
  /** Another time for each, because the log says some things once a minute. */
  now = 100_000 * ++count;
  readonly link: SimulatedLink;
  readonly directory = mkdtempSync(join(tmpdir(), "patchbay-service-"));
  service!: Service;
  /** Whether the service has come to its end by itself. */
  hasEnded = false;
  /** Whether clients are connected that have asked nothing. */
  areConnected = false;
  private serve!: clients.Serve;
  private alarmAt = Infinity;
  private end = 0;
  private waits = 0;
  private readonly spies: { mockRestore(): void }[];

  constructor(script: Script | undefined, private readonly settings: Partial<ServiceSettings> = {}) {
    this.link = new SimulatedLink(script);
    this.link.clock = () => this.now;
    this.passWall(0);
    const connect = (_listening: number, serve: clients.Serve) => this.connect(serve);
    this.spies = [
      spyOn(clients, "Clients").mockImplementation(connect as never),
      spyOn(Alarm.prototype, "set").mockImplementation((at) => void (this.alarmAt = at)),
    ];
  }

  /** A service begins, and finds what the one before has left. */
  begin(): this {
    const daemon = { wait: (fds: readonly number[]) => this.wait(fds) } as Partial<Daemon> as Daemon;
    this.service = new Service(daemon, -1, Journal.open(this.directory)!, { ...usualSettings, ...this.settings });
    return this;
  }

  private connect(serve: clients.Serve): Pick<clients.Clients, "fds" | "due" | "areConnected" | "wake"> {
    this.serve = serve;
    const areConnected = () => this.areConnected;
    return {
      fds: [],
      due: Infinity,
      get areConnected() {
        return areConnected();
      },
      wake: () => {},
    };
  }

  private passWall(seconds: number): void {
    this.now += seconds;
    setSystemTime((BOOTED + this.now) * 1000);
  }

  private wait(fds: readonly number[]): ReturnType<Daemon["wait"]> {
    if (++this.waits > 20_000) throw new Error("a storm");
    const ready = new Set([...this.link.ready()].filter((fd) => fds.includes(fd)));
    if (ready.size > 0) return { ready, mustEnd: false };
    if (this.alarmAt > this.end) return { ready, mustEnd: true };
    this.passWall(Math.max(0, this.alarmAt - this.now));
    return { ready: new Set([fds[0]!]), mustEnd: false };
  }

  /** Lets time pass. */
  pass(seconds: number): string[] {
    this.end = this.now + seconds;
    this.service.run();
    this.hasEnded = this.now < this.end && this.alarmAt <= this.end;
    this.passWall(Math.max(0, this.end - this.now));
    return this.link.news();
  }

  /** What the service answers at once. Answers to ADD are told in `link.did`. */
  ask(request: ServiceRequest, netns?: number): Answer | undefined {
    return this.client(request, netns).answered();
  }

  client(request: ServiceRequest, netns?: number) {
    let first: Answer | undefined;
    const client: clients.Client = {
      onGone: undefined,
      answer: (answer) => {
        first ??= answer;
        if (request.do !== "acquire") return;
        const end = "failure" in answer
          ? `fails: ${answer.failure}`
          : `gets ${answer.lease?.address ?? answer.lease6?.address}`;
        this.link.did.push(`${request.owner.containerId} ${end}`);
      },
    };
    this.serve(request, client, netns);
    return { answered: () => first, leave: () => client.onGone?.() };
  }

  add(
    containerId: string,
    options: Partial<LeaseOptions> = {},
    { network = owner.network, netns = someFile() } = {},
  ) {
    const wishes = { ...usualOptions, clientId: Buffer.from(containerId).toString("hex"), ...options };
    const one = { ...owner, containerId, network };
    return this.client({ do: "acquire", owner: one, netnsPath: `/run/netns/${containerId}`, wishes }, netns);
  }

  check(containerId: string): Answer | undefined {
    return this.ask({ do: "check", owner: { ...owner, containerId } });
  }

  release(containerId: string): void {
    this.ask({ do: "release", owner: { ...owner, containerId } });
  }

  list(after = "", network = owner.network): string[] {
    const answer = this.ask({ do: "list", network, after });
    if (answer === undefined || !("owners" in answer)) throw new Error("the answer is no list");
    return answer.owners!.map(({ containerId }) => containerId);
  }

  report(network = owner.network): unknown {
    const answer = this.ask({ do: "report", network });
    return answer !== undefined && "report" in answer ? answer.report : undefined;
  }

  [Symbol.dispose](): void {
    for (const spy of this.spies) spy.mockRestore();
    setSystemTime();
    this.link[Symbol.dispose]();
    rmSync(this.directory, { recursive: true });
  }
}

/** It counts as another namespace than the service's own, because it has another number. */
export function someFile(): number {
  return openSync("/dev/null", "r");
}
