/** A call of a plugin that stands still behind one of its system calls, until it is told to go on. */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { textOf } from "./if-there.ts";
import type { Point } from "./injection.ts";
import type { Machine } from "./machine.ts";
import { type Answer, answerOf, type Call, environmentOf, stdinOf } from "./plugins.ts";

export interface StoppedCall {
  /** False when it has ended without coming so far. */
  isStopped: boolean;
  /** Lets it go on, and answers what it ends with. */
  goOn(): Promise<Answer>;
  kill(): Promise<void>;
}

/** Only ends what hangs. */
const LIMIT_MS = 60_000;
/** The number of read(2) in asm/unistd.h. */
const READ = process.arch === "arm64" ? 63 : 0;

export async function stopAt(
  machine: Machine,
  bin: string,
  call: Call,
  { syscall, nth }: Point,
): Promise<StoppedCall> {
  const environment = Object.entries({ ...environmentOf(bin, call), PATCHBAY_RESIDENT: "off" });
  const plugin = machine.start([
    "env",
    "-i",
    ...environment.map(([name, value]) => `${name}=${value}`),
    join(bin, call.plugin),
  ]);
  await until(() => textOf(`/proc/${plugin.pid}/syscall`).startsWith(`${READ} 0x0 `));
  const file = join(tmpdir(), `patchbay-stopped-${plugin.pid}`);
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:signal=STOP:when=${nth}`];
  const tracer = Bun.spawn(["strace", "-f", "-o", file, "-p", String(plugin.pid), ...inject], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = tracer.stderr.getReader();
  await said.read();
  plugin.stdin.write(stdinOf(call));
  await plugin.stdin.end();
  // Its tracer keeps it in a state of its own, which lasts for a moment at other calls, too.
  const isStopped = () => textOf(file).includes("stopped by SIGSTOP");
  await until(() => isStopped() || plugin.exitCode !== null);
  const ended = async (): Promise<Answer> => {
    const [stdout, stderr] = await Promise.all([plugin.stdout.text(), plugin.stderr.text(), plugin.exited]);
    await tracer.exited;
    rmSync(file, { force: true });
    return answerOf({ code: plugin.exitCode ?? -1, stdout, stderr });
  };
  return {
    isStopped: isStopped(),
    async goOn() {
      // Each of its threads has a count of its own, and stops it once more.
      const again = setInterval(() => plugin.kill("SIGCONT"), 5);
      try {
        return await ended();
      } finally {
        clearInterval(again);
      }
    },
    async kill() {
      plugin.kill("SIGKILL");
      await ended();
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error("the plugin neither stands still nor ends");
    await Bun.sleep(1);
  }
}
