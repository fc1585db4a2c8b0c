/**
 * Breaks down the time of a whole process: programs that each do a little more, built like dist/patchbay and started in
 * random order. One is built by `bun build` alone; the last one starts from the page cache of a fresh boot.
 */
import { join, resolve } from "node:path";
import { build, flags } from "../../compile/build.ts";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { PATH, succeed } from "../call.ts";
import { forget, prepare, type Program, readAgain } from "../process.ts";
import { shuffled, summarise } from "../statistics.ts";

const root = resolve(import.meta.dir, "../..");

const steps: [program: string, name: string][] = [
  ["empty", "cold start: empty program"],
  ["leave", "cold start: + libc bound, left through it"],
  ["echo", "cold start: + stdin, JSON, stdout"],
  ["socket", "cold start: + netlink socket"],
];

/** The first code answers it, without the runtime. */
const VERSION = "cold start: bridge VERSION", GO_VERSION = "cold start: Go bridge VERSION";

export const coldStart: Benchmark = {
  name: "cold-start",
  run(bench) {
    const { machine } = bench;
    const version = {
      path: join(machine.alone.bin, "bridge"),
      env: { PATH, ...machine.alone.environment, CNI_COMMAND: "VERSION" },
    };
    const goVersion = { ...version, path: join(machine.go.bin, "bridge") };
    const status = {
      path: join(machine.alone.bin, "static"),
      env: { PATH, ...machine.alone.environment, CNI_COMMAND: "STATUS", CNI_PATH: machine.alone.bin },
      stdin: JSON.stringify({ cniVersion: "1.1.0", name: "bench", type: "static", ipam: { type: "static" } }),
    };
    const programs: { name: string; program: Program }[] = [
      { name: "cold start: /bin/true", program: { path: "/bin/true", env: { PATH } } },
      { name: GO_VERSION, program: goVersion },
      { name: "cold start: empty program as bun build makes it", program: program(buildByBunAlone(machine.scratch)) },
      ...(bench.quick ? steps.slice(-1) : steps).map(([file, name]) => ({
        name,
        program: program(
          build(join(machine.scratch, `cold-${file}`), { entry: join(root, `bench/cold/${file}.ts`) }),
        ),
      })),
      { name: "cold start: static STATUS", program: status },
      { name: VERSION, program: version },
    ];
    const contestants = programs.map(({ name, program }) => ({
      name,
      run: prepare(program, machine.scratch),
      samples: [] as number[],
    }));
    for (let run = 0; run < bench.runs(200); run++) {
      for (const { run, samples } of shuffled(contestants)) samples.push(succeed(run).ms);
    }
    const rows = contestants.map(({ name, samples }): Row => ({ name, unit: "ms", ours: summarise(samples) }));
    const go = rows.find(({ name }) => name === GO_VERSION)!.ours;
    const compared = rows.map((row) => row.name === VERSION ? { ...row, against: go, target: 0.3 } : row);
    return [...compared, afterBoot(bench, status)];
  },
};

function program(path: string): Program {
  return { path, env: { PATH }, stdin: "{}" };
}

function buildByBunAlone(scratch: string): string {
  const out = join(scratch, "cold-plain");
  const words = [process.execPath, "build", ...flags, `--outfile=${out}`, join(root, "bench/cold/empty.ts")];
  const built = Bun.spawnSync(words, { cwd: root, stdout: "pipe", stderr: "pipe" });
  if (built.exitCode !== 0) throw new Error(built.stderr.toString());
  return out;
}

/** With a page cache that page faults filled in small pieces. */
function afterBoot(bench: Bench, status: Program): Row {
  const { machine } = bench;
  const run = prepare(status, machine.scratch);
  forget(machine.patchbay);
  const first = succeed(run).ms;
  const samples: number[] = [];
  for (let count = 0; count < bench.runs(200); count++) samples.push(succeed(run).ms);
  readAgain(machine.patchbay); // the following benchmarks expect this page cache
  const note = `page cache filled by page faults; the first start took ${first.toFixed(0)} ms`;
  return { name: "cold start: static STATUS after a boot", unit: "ms", ours: summarise(samples), note };
}
