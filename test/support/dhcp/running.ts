/**
 * A program of a test that runs until it is stopped, in a namespace of a machine. It writes to a file, so nobody waits for
 * a pipe, and ends with the process that started it.
 */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import type { Subprocess } from "bun";
import { type Container, type Machine, netnsFromOutside } from "../machine.ts";
import { patienceMs } from "../patience.ts";
import { untilTrue } from "../until-true.ts";

export interface Place {
  machine: Machine;
  /** The namespace; the machine's own if this is left out. */
  in?: Container;
}

export interface RunningOptions {
  /** The file that gets stdout and stderr, after what is in it. */
  log: string;
  env?: Record<string, string>;
  cwd?: string;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** The states of sockets do not matter: UDP has none that listens. */
const SOCKET = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) /gm;

export class Running implements AsyncDisposable {
  private constructor(private readonly child: Subprocess, private readonly logFile: string) {}

  static start(place: Place, command: readonly string[], { log, env, cwd }: RunningOptions): Running {
    const { machine } = place, own = `/proc/${machine.pid}/ns`;
    const net = place.in === undefined ? `${own}/net` : netnsFromOutside(machine.pid, place.in);
    // Both programs execute the next one without a fork, so the process is the program's.
    const enter = ["nsenter", `--net=${net}`, `--mount=${own}/mnt`, "setpriv", "--pdeathsig", "KILL", "--"];
    const fd = openSync(log, "a");
    try {
      const output = { stdin: "ignore", stdout: fd, stderr: fd } as const;
      return new Running(Bun.spawn([...enter, ...command], { ...output, cwd, env: { PATH, ...env } }), log);
    } finally {
      closeSync(fd);
    }
  }

  get pid(): number {
    return this.child.pid;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Null when it runs, or a signal has ended it. */
  get exitCode(): number | null {
    return this.child.exitCode;
  }

  log(): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, "utf8") : "";
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Waits until it shows what it is to show. Throws with its output when it ends before. */
  async until(isReady: () => boolean | Promise<boolean>): Promise<void> {
    const hasEndedOrIsReady = async () => this.hasEnded || await isReady();
    await untilTrue(hasEndedOrIsReady, Boolean).catch((error) => {
      throw new Error(`${error}\n${this.log()}`);
    });
    if (this.hasEnded) throw new Error(`it ended:\n${this.log()}`);
  }

  /** Whether a UDP socket of its namespace has the port. */
  hasBound(port: number): boolean {
    const tables = ["udp", "udp6"].map((table) => `/proc/${this.pid}/net/${table}`);
    return tables.filter((path) => existsSync(path)).some((path) =>
      [...readFileSync(path, "utf8").matchAll(SOCKET)].some(([, found]) => parseInt(found!, 16) === port)
    );
  }

  /** A program that does not end for the signal is killed. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.hasEnded) return;
    this.signal(signal);
    const killing = setTimeout(() => this.signal("SIGKILL"), 10 * patienceMs());
    await this.child.exited;
    clearTimeout(killing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
