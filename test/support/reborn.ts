/**
 * A process namespace of its own in a machine. There, a process that has made a connection can end, and its number can
 * become another's, as chance would have it elsewhere. Who holds the connection then goes on with it.
 *
 *     await using stage = await openStage(machine);
 *     const resident = stage.start([PATCHBAY, "serve"]);
 *     const answers = await stage.connectAndEnd(connecting, going on, ["setpriv", …]);
 */
import { readFileSync } from "node:fs";
import type { Subprocess } from "bun";
import type { Machine, Outcome } from "./machine.ts";
import { childrenOf } from "./resident.ts";
import { untilTrue } from "./until-true.ts";

export interface Stage extends AsyncDisposable {
  /** Runs in the stage, and ends with it. */
  start(command: readonly string[]): Subprocess<"pipe", "pipe", "pipe">;
  run(command: readonly string[]): Promise<Outcome>;
  /** The process that `start` has started, by the number that it has in the machine. */
  pidOf(started: Subprocess): Promise<number>;
  /**
   * Runs a program (text for `bun -e`) that leaves a descriptor in `fd`. Another one goes on with it, as descriptor 3, when
   * the first has ended and a process that may do everything has its number. Returns that number.
   */
  handOver(begin: string, goOn: string, as?: readonly string[]): Promise<string>;
}

export async function openStage(machine: Machine): Promise<Stage> {
  const holder = machine.start(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "infinity"]);
  const [init] = await untilTrue(() => childrenOf(holder.pid), ({ length }) => length > 0);
  await untilTrue(() => readFileSync(`/proc/${init}/comm`, "utf8"), (name) => name === "sleep\n");
  const enter = ["nsenter", "--target", String(init), "--mount", "--pid"];
  const nsenters: Subprocess[] = [];
  const stage: Stage = {
    start(command) {
      const entered = machine.start([...enter, ...command]);
      nsenters.push(entered);
      return entered;
    },
    run: (command) => machine.run([...enter, ...command]),
    pidOf: async (started) => (await untilTrue(() => childrenOf(started.pid), ({ length }) => length > 0))[0]!,
    async handOver(begin, goOn, as = []) {
      // Threads and children take numbers. So the process that goes on starts none before the number is another's.
      const program = `
        ${begin}
        const wait = ["-c", 'read word </run/born; exec "$@"', "sh", process.execPath, "-e", ${JSON.stringify(goOn)}];
        Bun.spawn(["sh", ...wait], { stdio: ["ignore", "ignore", "ignore", fd] }).unref();
        await Bun.write("/run/number", String(process.pid));
        process.exit(0);
      `;
      await machine.sh("rm -f /run/born; mkfifo /run/born");
      const { code, stderr } = await stage.run([...as, process.execPath, "-e", program]);
      if (code !== 0) throw new Error(stderr);
      const number = await machine.sh("cat /run/number");
      // Others in the namespace may take the number that comes next.
      const reborn = `for attempt in $(seq 100); do
          echo $((${number} - 1)) >/proc/sys/kernel/ns_last_pid; sleep 600 &
          test $! = ${number} && exit; kill $!; wait $!
        done; exit 1`;
      const birth = await stage.run(["sh", "-c", `{ ${reborn}; } >/dev/null 2>&1 </dev/null`]);
      if (birth.code !== 0) throw new Error(`nobody could be given the number ${number}: ${birth.stderr}`);
      await machine.sh("timeout 60 sh -c 'echo go >/run/born'");
      return number;
    },
    async [Symbol.asyncDispose]() {
      holder.kill("SIGKILL");
      await holder.exited;
      // nsenter(1) stops with its child, and does not go on with it.
      for (const nsenter of nsenters) nsenter.kill("SIGKILL");
    },
  };
  return stage;
}
