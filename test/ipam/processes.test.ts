/** Several processes use one lease directory at once, and some are killed. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { releaseInvalid } from "../../src/ipam/claims.ts";
import { exportLeases, removeLeaseDirectory } from "../../src/ipam/take-over.ts";
import { add, leaseDirectory, leaseFiles, rangeSet } from "../support/lease-directory.ts";
import type { Churn, Steps } from "../support/lease-worker.ts";
import { random, randomBelow } from "../support/random.ts";

const WORKER = join(import.meta.dir, "../support/lease-worker.ts");
const TIMEOUT_MS = 300_000;

function place(): { directory: string; held: string } & Disposable {
  const top = mkdtempSync(join(tmpdir(), "patchbay-leases-"));
  const held = join(top, "held");
  mkdirSync(held);
  return {
    directory: join(top, "net"),
    held,
    [Symbol.dispose]: () => rmSync(top, { recursive: true, force: true }),
  };
}

function start(mode: string, task: Churn | Steps) {
  // Each chooses on its own.
  const env = { ...process.env, PATCHBAY_TEST_SEED: String(randomBelow(2 ** 32)) };
  return Bun.spawn([process.execPath, WORKER, mode, JSON.stringify(task)], { env, stdout: "pipe", stderr: "pipe" });
}

/** So many processes that take addresses and give them back. */
function churning(count: number, task: Omit<Churn, "name">) {
  return Array.from({ length: count }, (_, number) => start("churn", { ...task, name: `w${number}` }));
}

async function endWell(workers: ReturnType<typeof churning>): Promise<void> {
  for (const worker of workers) expect([await worker.stderr.text(), await worker.exited]).toEqual(["", 0]);
}

/** Every address can be had, and no more: nothing was lost or given twice. */
function expectWhole(directory: string, subnet: string, capacity: number): void {
  const made = leaseDirectory({ directory });
  const set = rangeSet(subnet);
  expect(leaseFiles(directory)).toEqual({});
  const given = Array.from({ length: capacity }, (_, number) => add(made, set, `all-${number}`));
  expect(new Set(given).size).toBe(capacity);
  expect(() => add(made, set, "one-more")).toThrow("no IP addresses available");
}

test("16 processes over 13 addresses: none is given twice, none is lost", async () => {
  using at = place();
  const subnet = "10.1.0.0/28";
  await endWell(churning(16, { ...at, subnet, rounds: 150 }));
  expectWhole(at.directory, subnet, 13);
}, TIMEOUT_MS);

test("8 processes over a range of several blocks", async () => {
  using at = place();
  await endWell(churning(8, { ...at, subnet: "fd00::/64", rounds: 700 }));
  expect(leaseFiles(at.directory)).toEqual({});
  expect(readdirSync(join(at.directory, ".patchbay")).length).toBeGreaterThan(2);
}, TIMEOUT_MS);

test(
  "while the index is exported, and the network removed, again and again: no call fails, none is given twice",
  async () => {
    using at = place();
    const subnet = "10.1.0.0/28", { options } = leaseDirectory({ directory: at.directory });
    const workers = churning(4, { ...at, subnet, rounds: 300 });
    const exited = Promise.all(workers.map((worker) => worker.exited));
    let exports = 0, isOver = false;
    void exited.then(() => isOver = true);
    for (; !isOver; exports++) {
      if (existsSync(at.directory)) {
        exportLeases(options);
        removeLeaseDirectory(options, { isDryRun: false, mayRelease: () => false });
      }
      await new Promise(setImmediate);
    }
    await endWell(workers);
    expect(exports).toBeGreaterThan(0);
    if (existsSync(at.directory)) expectWhole(at.directory, subnet, 13);
  },
  TIMEOUT_MS,
);

test("processes killed at any moment: what they had can be released, and no other is disturbed", async () => {
  using at = place();
  const subnet = "10.1.0.0/27";
  const running = new Map<string, ReturnType<typeof start>>();
  let next = 0;
  const begin = () => {
    const name = `k${next++}x`;
    running.set(name, start("churn", { ...at, name, subnet, rounds: 1_000_000 }));
  };
  for (let count = 0; count < 4; count++) begin();
  let killed = 0;
  for (let kill = 0; kill < 40; kill++) {
    await Bun.sleep(60 + random() * 30);
    const [name, worker] = [...running][0]!;
    running.delete(name);
    worker.kill("SIGKILL");
    await worker.exited;
    expect(await worker.stderr.text()).toBe("");
    if (worker.signalCode === "SIGKILL") killed++;
    // What an engine does for the containers of the dead process: they hold their addresses no more.
    const isDead = (containerId: string) => containerId.startsWith(name);
    for (const [address, text] of Object.entries(leaseFiles(at.directory))) {
      if (isDead(text)) rmSync(join(at.held, address), { force: true });
    }
    const { options } = leaseDirectory({ directory: at.directory });
    releaseInvalid(options, ({ containerId }) => !isDead(containerId));
    expect(Object.values(leaseFiles(at.directory)).filter(isDead)).toEqual([]);
    begin();
  }
  expect(killed).toBe(40);
  for (const worker of running.values()) {
    worker.kill("SIGKILL");
    await worker.exited;
    expect(await worker.stderr.text()).toBe("");
  }
  releaseInvalid(leaseDirectory({ directory: at.directory }).options, () => false);
  expectWhole(at.directory, subnet, 29);
}, TIMEOUT_MS);

test("ADD of one attachment by 8 processes at once: one of them gets an address", async () => {
  using at = place();
  const ids = Array.from({ length: 20 }, (_, number) => `c${number}`);
  const task = { directory: at.directory, subnet: "10.1.0.0/24", steps: ids.map((id) => `add ${id}`) };
  const workers = Array.from({ length: 8 }, () => start("steps", task));
  const answers: string[][] = await Promise.all(workers.map(async ({ stdout }) => JSON.parse(await stdout.text())));
  for (const [index, id] of ids.entries()) {
    const given = answers.map((each) => each[index]!).filter((answer) => answer.startsWith("10.1.0."));
    expect(given).toHaveLength(1);
    const refused = answers.map((each) => each[index]!).filter((answer) => answer.includes("duplicate allocation"));
    expect(refused).toHaveLength(7);
    expect(Object.values(leaseFiles(at.directory)).filter((text) => text === `${id}\r\neth0`)).toHaveLength(1);
  }
}, TIMEOUT_MS);

test("ADD and DEL of one attachment at once: in the end there is a lease or there is none", async () => {
  using at = place();
  const repeat = (...steps: string[]) => Array.from({ length: 200 }, () => steps).flat();
  const task = { directory: at.directory, subnet: "10.1.0.0/29" };
  const workers = [
    start("steps", { ...task, steps: repeat("add c1", "del c1") }),
    start("steps", { ...task, steps: repeat("del c1", "del c1") }),
    start("steps", { ...task, steps: repeat("add c1") }),
  ];
  for (const worker of workers) {
    const answers: unknown[] = JSON.parse(await worker.stdout.text());
    for (const answer of answers) expect(`${answer}`).toMatch(/^(0|1|10\.1\.0\.[2-6]|.*duplicate allocation.*)$/);
  }
  const made = leaseDirectory({ directory: at.directory });
  releaseInvalid(made.options, () => false);
  expect(existsSync(join(at.directory, ".patchbay", "10.1.0.0-29"))).toBe(true);
  expectWhole(at.directory, "10.1.0.0/29", 5);
}, TIMEOUT_MS);
