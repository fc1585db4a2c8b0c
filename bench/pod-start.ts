/**
 * `npm run pod-start`: how long a container engine takes to start a container, and the network's share of it, with
 * Patchbay and with what it replaces. docs/pod-start.md says how to read it.
 *
 * Runs as root in its own namespaces and does not change the machine. Exits with 1 when a limit was passed, and with 2
 * when it could not measure.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { defineTool, runTool } from "../compile/tool.ts";
import { type Engine, engines } from "./pod-start/engines.ts";
import { beyond, type Limits } from "./pod-start/limits.ts";
import { measureEngine } from "./pod-start/measure.ts";
import { podStart, requirePrograms, type Wish, wishOf } from "./pod-start/options.ts";
import { picture } from "./pod-start/picture.ts";
import { openPlace } from "./pod-start/place.ts";
import { type EngineRows, formatRows } from "./pod-start/report.ts";
import { environment, loadNow } from "./report.ts";

/** /run, /etc and /opt, where engines read and write, are the run's own. All its processes end with it. */
const SCRIPT = `
set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns
for folder in etc opt; do
  own=/run/own/$folder
  mkdir -p $own/files $own/work
  mount -t overlay overlay -o lowerdir=/$folder,upperdir=$own/files,workdir=$own/work /$folder
done
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
set +e
"$@"
# Not in its place: this shell waits for processes that have lost their parent.
exit $?
`;

/** Inside. So no failure of a mount or of unshare(1) looks like a limit that was passed. */
const LIMIT_PASSED = 33;

function enterNamespaces(argv: readonly string[]): number {
  if (process.getuid!() !== 0) throw new Error("it makes namespaces and mounts: run it as root");
  const again = [process.execPath, import.meta.path, "--inside", ...argv];
  // However this process ends, all others end with it.
  const ended = ["setpriv", "--pdeathsig", "KILL"];
  const unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const shell = ["--propagation", "private", "sh", "-c", SCRIPT, "sh", ...again];
  const inner = Bun.spawnSync([...ended, ...unshare, ...shell], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  return inner.exitCode === 0 ? 0 : inner.exitCode === LIMIT_PASSED ? 1 : 2;
}

async function measure(wish: Wish): Promise<number> {
  const place = openPlace(wish.program, wish.resident), about = environment("/run"), measured: EngineRows[] = [];
  for (const name of wish.engines) {
    console.error(`[pod-start] ${name}`);
    const engine: Engine = engines[name];
    measured.push(await measureEngine(place, engine, wish.theirs[engine.replaces], wish.count));
  }
  about.load += `, ${loadNow()} after`;
  const text = formatRows(about, measured), failures = beyond(measured, wish.limits);
  console.log([text, ...verdicts(wish.limits, failures)].join("\n"));
  if (wish.out !== undefined) {
    mkdirSync(wish.out, { recursive: true });
    const json = { about, count: wish.count, limits: wish.limits, failures, engines: measured };
    writeFileSync(join(wish.out, "pod-start.txt"), text);
    writeFileSync(join(wish.out, "pod-start.json"), `${JSON.stringify(json, undefined, 2)}\n`);
    writeFileSync(join(wish.out, "pod-start.svg"), picture(measured));
  }
  return failures.length > 0 ? LIMIT_PASSED : 0;
}

function verdicts(limits: Limits, failures: readonly string[]): string[] {
  if (failures.length > 0) return failures.map((one) => `LIMIT PASSED: ${one}`);
  return limits.ratio === undefined && limits.ms === undefined ? [] : ["within the limit"];
}

/** What could not be measured is no speed: it has an exit status of its own. */
async function orSay(work: () => number | Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    console.error(`pod-start: ${error instanceof Error ? error.message : error}`);
    return 2;
  }
}

export const tool = defineTool({
  ...podStart,
  needs: "all",
  begin(given, argv) {
    const wish = wishOf(given, resolve(import.meta.dir, ".."));
    return () =>
      orSay(() => {
        requirePrograms(wish);
        return given.values.inside ? measure(wish) : enterNamespaces(argv);
      });
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
