/** `explain --live` is killed at every system call, and under load: no table, rule or sysctl stays. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { needs } from "../support/needs.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { RandomKills } from "../support/random-kills.ts";
import { ScratchFile } from "../support/scratch-file.ts";
import { openTown, type Town } from "./town.ts";

needs("strace");

let town: Town, before: string;
beforeAll(async () => {
  town = await openTown();
  // The first packet of all loads what the kernel has as modules.
  await town.explain([...LIVE]);
  before = await state();
});
afterAll(() => town[Symbol.asyncDispose]());

const LIVE = ["web", "198.18.0.2", "tcp/7000", "--live"] as const;

const STATE = `for each in . web jug far outside; do
  if [ $each = . ]; then in=; else in="ip netns exec $each"; fi
  $in nft -a list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*//'
  $in sysctl -a 2>/dev/null | grep -v 'count\\|neigh.*stale\\|random\\|unres_qlen\\|kernel\\.\\(ns_last\\|pty\\)\\|^fs\\.\\|^vm\\.'
done`;

const state = () => town.machine.sh(STATE);

async function expectAsBefore(what: string): Promise<void> {
  const tables = await town.machine.sh(
    "nft list tables; for each in web jug far; do ip netns exec $each nft list tables; done",
  );
  expect({ what, tables }).toEqual({ what, tables: expect.not.stringContaining("patchbay-live") });
}

/** From the first table's name on: before that, nothing is made. */
async function pointsOfLive(): Promise<{ syscall: string; nth: number }[]> {
  using scratch = new ScratchFile();
  await town.machine.sh(`strace -f -o ${scratch.file} ${PATCHBAY} explain ${LIVE.join(" ")} >/dev/null`);
  const lines = readFileSync(scratch.file, "utf8").split("\n"),
    [main] = lines[0]!.split(" "),
    counts = new Map<string, number>();
  let hasBegun = false;
  return lines.flatMap((line) => {
    const [, pid, syscall] = /^(\d+) +([a-z_0-9]+)\(/.exec(line) ?? [];
    if (pid !== main || syscall === undefined) return [];
    const nth = (counts.get(syscall) ?? 0) + 1;
    counts.set(syscall, nth);
    hasBegun ||= / getrandom\(.*, 6, 0\)/.test(line);
    return hasBegun ? [{ syscall, nth }] : [];
  });
}

test("killed at every system call", async () => {
  const points = await pointsOfLive();
  expect(points.length).toBeGreaterThan(50);
  let killed = 0;
  for (const { syscall, nth } of points) {
    const inject = `-e trace=${syscall} -e inject=${syscall}:signal=KILL:when=${nth}`;
    const { code } = await town.machine.run([
      "sh",
      "-c",
      `strace -f -o /dev/null ${inject} ${PATCHBAY} explain ${LIVE.join(" ")}`,
    ]);
    if (code === 137) killed++;
    await expectAsBefore(`${syscall} ${nth}`);
  }
  expect(killed).toBeGreaterThan(points.length / 2);
  expect(await state()).toBe(before);
});

test("killed a hundred times at random, while others send", async () => {
  const flood = town.machine.start(["ip", "netns", "exec", "jug", "ping", "-qf", "198.18.0.2"]),
    kills = new RandomKills();
  while (kills.killed < 100) {
    await Promise.all([0, 1, 2, 3].map(() => kills.kill(town.machine.start([PATCHBAY, "explain", ...LIVE]))));
  }
  flood.kill();
  await flood.exited;
  await expectAsBefore("at random");
  expect(await state()).toBe(before);
});
