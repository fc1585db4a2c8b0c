/**
 * The agent is killed at every system call that writes, sends or receives: while it claims, while it adopts a claim that
 * it does not know, and while it gives a block back. The next one goes on: the store, what is written down, and what ADD is
 * told agree, and nobody else's block is touched.
 */
import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Cluster, ENDPOINT, openCluster } from "../support/cluster.ts";
import { textOf } from "../support/if-there.ts";
import { random } from "../support/random.ts";

const SCRIPT = resolve(import.meta.dir, "../support/quick-agent.ts");
const SYSCALLS = ["openat", "rename", "fsync", "write", "sendto", "recvfrom"] as const;
/** How often a call is made depends on timing. */
const ENOUGH_MISSES = 2, LANES = 4;
/** Others each time. */
const STEP = 3;

const scenarios = ["claiming", "adopting", "giving back"] as const;
type Scenario = typeof scenarios[number];

interface Point {
  syscall: typeof SYSCALLS[number];
  nth: number;
}

test.each(scenarios)("killed while %s, the next agent goes on", async (scenario) => {
  await using cluster = await openCluster();
  const hits = new Map<string, number>();
  await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
    for (const syscall of SYSCALLS.filter((_, at) => at % LANES === lane)) {
      for (let nth = 1 + Math.floor(random() * STEP), misses = 0; misses < ENOUGH_MISSES; nth += STEP) {
        const isHit = await runKilled(cluster, scenario, { syscall, nth });
        if (isHit) hits.set(syscall, (hits.get(syscall) ?? 0) + 1);
        else misses++;
      }
    }
  }));
  for (const syscall of SYSCALLS) expect([syscall, hits.get(syscall) ?? 0]).not.toEqual([syscall, 0]);
}, 1_800_000);

let runs = 0;

async function runKilled(cluster: Cluster, scenario: Scenario, point: Point): Promise<boolean> {
  const name = `k${++runs}`, place = `/run/sweep/${name}`;
  const ranges = [{ cidr: "10.1.0.0/24", blockSize: 64 }];
  const pool = { layout: "flat", ranges, nodes: { matchLabels: { only: name } } };
  await cluster.machine.sh(`mkdir -p ${place}`);
  await cluster.write(`pool/${name}`, pool);
  const agent = (tracing?: Point) => runAgent(cluster, [`${place}/run`, `${place}/lib`, name, ENDPOINT], tracing);
  if (scenario !== "claiming") await agent();
  if (scenario === "adopting") {
    await cluster.machine.sh(`sed -i 's/"grants":.*"seen"/"grants":[],"seen"/' ${place}/lib/node/state.json`);
  }
  if (scenario === "giving back") await cluster.write(`pool/${name}`, { ...pool, state: "closed" });
  const { isHit } = await agent(point);
  const last = await agent();
  const where = `${scenario}, ${point.syscall} ${point.nth}`;
  expect([where, last.code, last.said.includes("error")]).toEqual([where, 0, false]);

  const keys = await cluster.keys(`block/${name}.`);
  const owned: string[] = [];
  for (const key of keys) if ((await cluster.record(key))!["owner"] !== undefined) owned.push(key);
  const { grants } = JSON.parse(await cluster.machine.sh(`cat ${place}/lib/node/state.json`));
  const served = await cluster.machine.sh(
    `cat '${place}/run/pool~${name}' 2>/dev/null || echo '{"blocks":{"served":0}}'`,
  );
  const count = scenario === "giving back" ? 0 : 1;
  expect([where, owned.length, grants.map(({ key }: { key: string }) => key), JSON.parse(served).blocks.served])
    .toEqual([where, count, owned, count]);
  await cluster.erase(`pool/${name}`);
  return isHit;
}

async function runAgent(cluster: Cluster, words: readonly string[], point?: Point) {
  const agent = cluster.machine.start([process.execPath, SCRIPT, ...words]);
  const reader = agent.stdout.getReader();
  await reader.read();
  const file = join(tmpdir(), `patchbay-node-${agent.pid}`);
  const tracer = point && Bun.spawn([
    "strace",
    "-f",
    "-o",
    file,
    "-p",
    String(agent.pid),
    "-e",
    `trace=${point.syscall}`,
    "-e",
    `inject=${point.syscall}:signal=KILL:when=${point.nth}`,
  ], { stdout: "ignore", stderr: "pipe" });
  if (tracer !== undefined) await tracer.stderr.getReader().read();
  await Promise.resolve(agent.stdin.end()).catch(() => {});
  const said = await agent.stderr.text();
  await agent.exited;
  await tracer?.exited;
  const trace = textOf(file);
  return { code: agent.exitCode, said, isHit: trace.includes("killed by SIGKILL") };
}
