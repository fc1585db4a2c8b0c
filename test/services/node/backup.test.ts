/** etcd is restored from a backup, by the steps of docs/cluster-moving.md, while agents run: nobody loses or shares an address. */
import { expect, test } from "bun:test";
import { firstOf, isServing, servedRangesIn } from "../../support/served-pool.ts";
import { type ClusterHost, ENDPOINT, openCluster } from "../../support/cluster.ts";
import { commandsOn, networkFiles } from "../../support/commands.ts";
import { untilTrue } from "../../support/until-true.ts";

const { directory } = networkFiles();
const LAN = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", blockSize: 16 }] };

test("a backup, claims after it, the restore, the alarm, and back to normal", async () => {
  await using cluster = await openCluster();
  const { machine } = cluster, { patchbay } = commandsOn(() => machine, () => directory);
  const run = ({ name, kept, environment }: ClusterHost, ...words: string[]) =>
    patchbay(["node", ...words, "--config", `/run/nodes/${name}/cluster.json`, "--data-dir", kept], environment);
  await cluster.write("pool/lan", LAN);
  const n1 = await cluster.node("n1"), n2 = await cluster.node("n2"), n3 = await cluster.node("n3");
  await n1.start();
  const before = await n1.until("lan", isServing);
  await cluster.snapshot("/run/backup.db");

  // What the backup does not know: a node, its block, and a second block of the other.
  await n2.start();
  const second = await n2.until("lan", isServing);
  for (let last = 1; last < 17; last++) {
    const [a, b, c, d] = firstOf(before).split(".").map(Number) as [number, number, number, number];
    await n1.lease("lan", `${a}.${b}.${c}.${d + last - 1}`);
  }
  await n1.until("lan", (served) => served!.blocks.served === 2);
  await n2.lease("lan", firstOf(second));
  await n2.until("lan", (served) => served!.blocks.served === 2);
  const served = async () => [servedRangesIn((await n1.served("lan"))!), servedRangesIn((await n2.served("lan"))!)];
  const then = await served();

  await cluster.restore("/run/backup.db");
  await untilTrue(() => cluster.record("alarm"), (alarm) => alarm !== undefined);
  await untilTrue(() => cluster.keys("block/"), (keys) => keys.length === 4);
  expect(await served()).toEqual(then);
  // A node that comes meanwhile gets nothing.
  await n3.start();
  const waiting = await n3.until("lan", (file) => file?.obstacle?.includes("has raised the alarm") === true);
  expect(waiting.blocks.served).toBe(0);
  const check = await run(n1, "check");
  expect([check.code, check.stdout]).toEqual([1, expect.stringContaining("alarm")]);

  const over = await untilTrue(() => run(n1, "check", "--over"), ({ code }) => code === 0);
  expect(over.stdout).toContain("the alarm is over, and taken away: nodes claim again");
  const third = await n3.until("lan", isServing);
  const taken = then.flat().map((range) => range.split("-")[0]!);
  expect([taken.includes(firstOf(third)), await cluster.keys("alarm"), await served()]).toEqual([false, [], then]);
  const all = await patchbay(
    ["ipam", "check", "--config", "/run/nodes/n3/cluster.json", "--data-dir", n3.kept],
    n3.environment,
  );
  expect(all.stdout).toContain(`node n3, etcd at ${ENDPOINT}`);
});
