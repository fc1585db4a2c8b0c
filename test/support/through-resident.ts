/**
 * Whether the resident of a machine really serves what the tests call, with PATCHBAY_TEST_RESIDENT=1.
 *
 * A call that the resident serves never loads the dynamic loader; one that runs by itself does. The loader says so in a
 * file when LD_DEBUG asks it to. nsenter(1), by which calls enter the machine, has it loaded once before.
 */
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll } from "bun:test";
import { pluginNames } from "../../src/plugins/table.ts";
import type { Machine, RunOptions } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";
import { childrenOf, isThroughResident, type Resident, startResident } from "./resident.ts";

const LOADED = /total startup time in dynamic loader/g;

let notes: string | undefined;
const counts = { plugins: { calls: 0, served: 0 }, runtime: { calls: 0, served: 0 } };

/** Runs the call, and counts it when it is one that a resident may serve. */
export async function countingServed<T>(
  command: readonly string[],
  options: RunOptions,
  run: (options: RunOptions) => Promise<T>,
): Promise<T> {
  const kind = isThroughResident() ? kindOf(command, options) : undefined;
  if (kind === undefined) return await run(options);
  const count = counts[kind], name = `${kind}${++count.calls}`;
  notes ??= mkdtempSync(join(tmpdir(), "patchbay-served-"));
  const env = { ...options.env, LD_DEBUG: "statistics", LD_DEBUG_OUTPUT: join(notes, name) };
  const outcome = await run({ ...options, env });
  const files = readdirSync(notes).filter((file) => file.startsWith(`${name}.`)).map((file) => join(notes!, file));
  if (files.every((file) => readFileSync(file, "utf8").match(LOADED)?.length === 1)) count.served++;
  for (const file of files) rmSync(file);
  return outcome;
}

/** Declined, whatever is asked of it. */
const NEVER_SERVED = "flannel";

/** Undefined when it is no call of ours, or one that a resident cannot serve. */
function kindOf([program = ""]: readonly string[], options: RunOptions): keyof typeof counts | undefined {
  if (options.in !== undefined || options.env?.PATCHBAY_RESIDENT === "off") return undefined;
  try {
    if (realpathSync(program) !== realpathSync(PATCHBAY)) return undefined;
  } catch {
    return undefined;
  }
  const name = basename(program);
  if (name === NEVER_SERVED) return undefined;
  return pluginNames.includes(name) ? "plugins" : "runtime";
}

/** The resident that a machine has for its calls, with one worker. */
export class OwnResident {
  readonly #machine: Machine;
  readonly #process: Resident;
  readonly #workers: readonly number[];
  #isLossExpected = false;

  private constructor(machine: Machine, resident: Resident) {
    this.#machine = machine;
    this.#process = resident;
    this.#workers = childrenOf(resident.pid);
  }

  static async start(machine: Machine): Promise<OwnResident> {
    return new OwnResident(machine, await startResident(machine, 1));
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** A test has killed the worker. */
  expectLoss(): void {
    this.#isLossExpected = true;
  }

  /** Returns what is wrong: that the resident, or its worker, had ended before. */
  async end(): Promise<string | undefined> {
    const resident = this.#process, isAlive = resident.exitCode === null && resident.signalCode === null;
    try {
      if (!isAlive) return `the resident ended: ${await resident.stderr.text()}`;
      if (this.#isLossExpected || !await this.#hasLostWorkers()) return undefined;
      return "the resident's worker ended";
    } catch (error) {
      return String(error);
    } finally {
      resident.kill("SIGKILL");
      await resident.exited;
    }
  }

  /** Not those that made room when a test had removed the socket. */
  async #hasLostWorkers(): Promise<boolean> {
    const now = childrenOf(this.#process.pid);
    if (this.#workers.every((pid) => now.includes(pid))) return false;
    const { stdout } = await this.#machine.run([PATCHBAY, "serve", "--status", "--json"], {
      env: { PATCHBAY_RESIDENT: "off" },
    });
    const { workersReplaced, problem } = JSON.parse(stdout);
    if (workersReplaced === undefined) throw new Error(problem);
    return workersReplaced > 0;
  }
}

if (isThroughResident()) {
  afterAll(() => {
    if (notes !== undefined) rmSync(notes, { recursive: true });
    const { plugins, runtime } = counts;
    const told = (one: typeof plugins) => `${one.served} of ${one.calls} calls`;
    console.log(`the resident served ${told(plugins)} of plugins, ${told(runtime)} of the runtime`);
    if (plugins.calls + runtime.calls > 0 && plugins.served + runtime.served === 0) {
      throw new Error("the resident served no call");
    }
  });
}
