/**
 * A program that uses the package: each line of stdin asks for one call, each line of stdout answers it. installed.ts
 * puts it into a folder where the package is installed.
 */
import { ArgumentError, CniError, type NetworkEvent, open, openInThread, type Options } from "patchbay";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync } from "node:fs";

const { isThreaded, ...options } = JSON.parse(process.argv[2] ?? "{}") as Options & { isThreaded?: boolean };
const warnings: string[] = [];
const given: Options = { ...options, onWarning: (warning) => void warnings.push(warning) };
const patchbay = isThreaded ? openInThread(given) : open(given);
let ticks = 0;

const ending = new AbortController(), events: NetworkEvent[] = [];
let watching: Promise<void> | undefined;

/** What a library must leave as it is. */
function state(): Record<string, string> {
  const descriptors = readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`];
    } catch {
      return []; // The one that lists them.
    }
  });
  return {
    network: readlinkSync("/proc/thread-self/ns/net"),
    mounts: readlinkSync("/proc/thread-self/ns/mnt"),
    umask: process.umask().toString(8),
    directory: readlinkSync("/proc/self/cwd"),
    descriptors: descriptors.join(),
    signals: /^Sig(?:Blk|Ign|Cgt):[^]*?\n(?!Sig)/m.exec(readFileSync("/proc/self/status", "utf8"))![0],
  };
}

const own: Record<string, (...given: never[]) => unknown> = {
  async watch(existing: boolean) {
    const iterator = open(options).events({ signal: ending.signal, existing });
    watching = (async () => {
      for await (const event of iterator) events.push(event);
    })();
    await Bun.sleep(0);
  },
  seen: () => events,
  async unwatch() {
    ending.abort();
    await watching;
  },
  warnings: () => warnings,
  children: () => readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim(),
  /** How often the event loop went round while a call was made. */
  ticks: () => ticks,
  /** A thread for each container, all at once. */
  async crowd(containers: string[], network: string, times: number) {
    await Promise.all(containers.map(async (containerId) => {
      const thread = openInThread(given), attachment = { containerId, netns: `/run/netns/${containerId}` };
      for (let count = 0; count < times; count++) {
        await thread.add(network, attachment);
        await thread.check(network, attachment);
        await thread.del(network, attachment);
      }
      await thread.close();
    }));
  },
  setVariable(name: string, value: string) {
    process.env[name] = value;
  },
  /** To a directory that is gone then. */
  lose(directory: string) {
    mkdirSync(directory);
    process.chdir(directory);
    rmdirSync(directory);
  },
  close: () => "close" in patchbay ? patchbay.close() : undefined,
  async repeat(times: number, network: string, attachment: never) {
    if ("close" in patchbay) throw new Error("only without a thread");
    for (let count = 0; count < times; count++) {
      patchbay.add(network, attachment);
      patchbay.del(network, attachment);
      if (count % 100 === 0) await Bun.sleep(0);
    }
  },
};

async function answer(name: string, given: unknown[]) {
  const before = state();
  const run = (own[name] ?? patchbay[name as "add"].bind(patchbay)) as (...given: unknown[]) => unknown;
  const outcome = await (async () => ({ value: await run(...given) ?? null }))().catch((error) => ({
    error: {
      isCniError: error instanceof CniError,
      isArgumentError: error instanceof ArgumentError,
      ...error,
      message: error.message,
    },
  }));
  const after = state();
  const changed = Object.keys(after).filter((key) => after[key] !== before[key]).map((key) =>
    `${key}: ${before[key]} → ${after[key]}`
  );
  return { ...outcome, changed };
}

// A handler of the program's own, which has to stay.
process.on("SIGCHLD", () => {});
setInterval(() => ticks++, 1).unref();
// What the runtime opens when it needs it for the first time is not the library's.
await Bun.sleep(5);
if (isThreaded) await Promise.allSettled([patchbay.networks()]);
const timer = setTimeout(() => {}, 1);
clearTimeout(timer);
console.log("{}");
for await (const line of console) {
  const { name, given } = JSON.parse(line);
  console.log(JSON.stringify(await answer(name, given)));
}
