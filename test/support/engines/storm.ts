/**
 * A resident that is killed, stopped and upgraded again and again, while engines call plugins. Each turn waits until it
 * serves, so that the next one meets calls in it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "bun:test";
import { keepCalling } from "../keep-calling.ts";
import { isListening } from "../listening.ts";
import type { Machine } from "../machine.ts";
import { writeOtherBuild } from "../other-build.ts";
import { childrenOf, type Resident, SOCKET, startResident } from "../resident.ts";
import { untilServed } from "../resident-status.ts";
import { untilTrue } from "../until-true.ts";
import { PLUGINS, PROGRAM } from "./engine-machine.ts";
import { random } from "../random.ts";

/** The longest is longer than a caller waits for a resident to begin (src/native/launch.h). */
const STOPPED_MS = [50, 1200, 300];

const turns = {
  async "killed with its workers"(storm) {
    // Stopped, it starts no other.
    signal(storm.resident.pid, "SIGSTOP");
    for (const pid of [...childrenOf(storm.resident.pid), storm.resident.pid]) signal(pid, "SIGKILL");
    await storm.startAgain();
  },
  async "killed alone"(storm) {
    signal(storm.resident.pid, "SIGKILL");
    await storm.startAgain();
  },
  "a worker killed"(storm) {
    signal(childrenOf(storm.resident.pid).at(storm.count % 2), "SIGKILL");
  },
  async stopped(storm) {
    const all = [storm.resident.pid, ...childrenOf(storm.resident.pid)];
    for (const pid of all) signal(pid, "SIGSTOP");
    await Bun.sleep(STOPPED_MS[storm.count % STOPPED_MS.length]!);
    for (const pid of all) signal(pid, "SIGCONT");
  },
  async upgraded(storm) {
    await storm.machine.sh(`${storm.builds[storm.count % 2]} install ${PLUGINS}`);
  },
} satisfies Record<string, (storm: Storm) => Promise<void> | void>;

export const ROUNDS = 5;

interface Weather {
  rounds: number;
  /** How often each kind of work was done. */
  done: number[];
  /** Calls, by all residents together, at least. */
  served: number;
  declined: string[];
}

/** Keeps doing each work beside `rounds` rounds with every turn. */
export async function storm(machine: Machine, rounds: number, work: (() => Promise<void>)[]): Promise<Weather> {
  await using storm = await Storm.open(machine);
  const loops = work.map(keepCalling);
  let done;
  try {
    while (storm.count < rounds) await storm.round();
  } finally {
    done = await Promise.allSettled(loops.map(({ stop }) => stop()));
  }
  for (const one of done) if (one.status === "rejected") throw one.reason;
  const counts = done.map((one) => one.status === "fulfilled" ? one.value : 0);
  return { rounds, done: counts, served: storm.served, declined: [...storm.declined] };
}

/** That it met the work: calls were served, and no resident declined one that was like it. */
export function expectStorm({ rounds, done, served, declined }: Weather): void {
  const containers = done.reduce((sum, one) => sum + one, 0);
  console.log(
    `${containers} containers, ${served} calls served, ${rounds} rounds of ${Object.keys(turns).length} turns`,
  );
  for (const count of done) expect(count).toBeGreaterThan(0);
  expect(served).toBeGreaterThan(0);
  expect(declined.filter((reason) => reason !== "build")).toEqual([]);
}

class Storm implements AsyncDisposable {
  served = 0;
  readonly declined = new Set<string>();
  /** Rounds, each with every kind of turn. */
  count = 0;
  #servedByThis = 0;

  private constructor(
    readonly machine: Machine,
    public resident: Resident,
    private readonly folder: string,
    readonly builds: readonly [string, string],
  ) {}

  static async open(machine: Machine): Promise<Storm> {
    const folder = mkdtempSync(join(tmpdir(), "patchbay-storm-"));
    const builds = [1, 2].map((number) => writeOtherBuild(join(folder, `build-${number}`), number));
    const resident = await startResident(machine, undefined, PROGRAM);
    await untilServed(machine, PROGRAM);
    return new Storm(machine, resident, folder, builds as [string, string]);
  }

  async round(): Promise<void> {
    for (const turn of Object.values(turns)) {
      await Bun.sleep(100 + random() * 200);
      await this.look();
      await turn(this);
      await this.look();
    }
    this.count++;
  }

  /** Waits until calls are served, and counts them. */
  async look(): Promise<void> {
    const { served, declined } = await untilServed(this.machine, PROGRAM);
    this.served += served - (served < this.#servedByThis ? 0 : this.#servedByThis);
    this.#servedByThis = served;
    for (const reason of Object.keys(declined)) this.declined.add(reason);
  }

  /** When no process holds its socket any more: until then the new one takes it for another's. */
  async startAgain(): Promise<void> {
    await this.resident.exited;
    await untilTrue(() => isListening(this.machine, SOCKET), (is) => !is);
    this.resident = await startResident(this.machine, undefined, PROGRAM);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.resident.kill("SIGTERM");
    await this.resident.exited;
    rmSync(this.folder, { recursive: true });
  }
}

/** A worker may have made room for another. */
function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch (error) {
    if ((error as { code?: string }).code !== "ESRCH") throw error;
  }
}
