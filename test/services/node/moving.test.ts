/** Two nodes go from files into etcd and back, with containers' leases: no address changes hands meanwhile. */
import { expect, test } from "bun:test";
import type { ServedPool } from "../../../src/cluster/served-file.ts";
import { type Cluster, type ClusterHost, ENDPOINT, openCluster } from "../../support/cluster.ts";
import { servedRangesIn } from "../../support/served-pool.ts";
import { commandsOn, networkFiles } from "../../support/commands.ts";

const { directory } = networkFiles();
const LAN = {
  layout: "flat",
  ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }],
  singles: ["10.1.0.250"],
};
const ROSTER = "/run/roster", CLOSED = { ...LAN, state: "closed" };

const isServing = (count: number) => (served: ServedPool | undefined) => served?.blocks.served === count;

async function stage(cluster: Cluster, given: Record<string, (number | string)[]>) {
  const { machine } = cluster, { patchbay } = commandsOn(() => machine, () => directory);
  const put = (path: string, value: unknown) =>
    machine.run(["sh", "-c", `mkdir -p $(dirname ${path}); cat >${path}`], { stdin: JSON.stringify(value) });
  await put(`${ROSTER}/pools.d/lan.json`, LAN);
  const hosts: ClusterHost[] = [];
  for (const [name, blocks] of Object.entries(given)) {
    await put(`${ROSTER}/nodes.d/${name}.json`, { blocks: { lan: blocks } });
    hosts.push(await cluster.node(name, { store: { roster: { directory: ROSTER } } }));
    await put(`/run/nodes/${name}/to.json`, { node: name, store: { etcd: { endpoints: [ENDPOINT] } } });
  }
  const run = ({ name, kept, environment }: ClusterHost, ...words: string[]) =>
    patchbay(["node", ...words, "--config", `/run/nodes/${name}/cluster.json`, "--data-dir", kept], environment);
  const move = (host: ClusterHost) => run(host, "move", "--to", `/run/nodes/${host.name}/to.json`);
  const follow = async (host: ClusterHost) => {
    await machine.sh(`cd /run/nodes/${host.name}; cp cluster.json from.json; cp to.json cluster.json`);
    await host.start();
  };
  return { machine, hosts, put, run, move, follow, patchbay };
}

test("from files into etcd, and back", async () => {
  await using cluster = await openCluster();
  const { hosts, machine, put, run, move, follow, patchbay } = await stage(cluster, {
    n1: [0, "2-3"],
    n2: [1, "10.1.0.250"],
  });
  const [n1, n2] = hosts as [ClusterHost, ClusterHost];
  for (const host of hosts) await host.start();
  await n1.until("lan", isServing(3));
  await n2.until("lan", isServing(2));
  for (const address of ["10.1.0.2", "10.1.0.35"]) await n1.lease("lan", address);
  for (const address of ["10.1.0.17", "10.1.0.250"]) await n2.lease("lan", address);
  const leases = () => machine.sh("cd /run/nodes && grep -r . n*/lib/pools --include='10.*' | tr -d '\\r' | sort");
  const before = await leases();

  expect((await move(n1)).stderr).toContain("another 'patchbay node' runs on this host");
  for (const host of hosts) await host.kill();
  expect((await move(n1)).stderr).toContain(`there is no pool lan in etcd at ${ENDPOINT}`);
  await cluster.write("pool/lan", { ...CLOSED, ranges: [{ ...LAN.ranges[0], blockSize: 8 }] });
  expect((await move(n1)).stderr).toContain('pool lan: its "ranges" are others');
  await cluster.write("pool/lan", LAN);
  expect((await move(n1)).stderr).toContain("pool lan is open in etcd");
  expect([await cluster.keys("block/"), await cluster.keys("node/")]).toEqual([[], []]);
  // What ADD reads is there all the time.
  expect(servedRangesIn((await n1.served("lan"))!)).toHaveLength(3);

  await cluster.write("pool/lan", CLOSED);
  for (const times of [1, 2]) {
    const { code, stdout, stderr } = await move(n1);
    expect([times, code, stderr]).toEqual([times, 0, ""]);
    expect(stdout).toContain("node n1 has 3 blocks in etcd");
    expect(stdout).toContain("not there yet: n2");
  }
  await follow(n1);
  await n1.until("lan", (served) => servedRangesIn(served!).some((range) => range.startsWith("10.1.0.33-")));
  expect((await move(n2)).stdout).toContain("node n2 has 2 blocks in etcd");
  await follow(n2);
  await n2.until("lan", (served) => served?.singles?.served.length === 1);
  expect(await leases()).toBe(before);
  // What is empty of a closed pool goes back.
  await n1.until("lan", isServing(2));
  const owned = async () =>
    Object.fromEntries(
      await Promise.all((await cluster.keys("block/")).map(async (key) => {
        const { owner } = (await cluster.record(key)) as { owner?: { node: string } };
        return [key, owner?.node];
      })),
    );
  const single = (await cluster.keys("block/")).find((key) => key.length > "block/lan.99".length)!;
  expect(await owned()).toMatchObject({
    "block/lan.0": "n1",
    "block/lan.1": "n2",
    "block/lan.2": "n1",
    [single]: "n2",
  });
  expect([await cluster.keys("alarm"), (await run(n1, "list")).code]).toEqual([[], 0]);

  // Back: another directory, as each host would have it.
  for (const host of hosts) await host.kill();
  const exported = await run(n1, "export", "--to", "/run/back");
  expect([exported.code, exported.stderr]).toEqual([0, ""]);
  expect(JSON.parse(await machine.sh("cat /run/back/nodes.d/n1.json"))).toEqual({ blocks: { lan: [0, 2] } });
  expect(JSON.parse(await machine.sh("cat /run/back/nodes.d/n2.json"))).toEqual({
    blocks: { lan: [1, "10.1.0.250"] },
  });
  for (const { name } of hosts) {
    await put(`/run/nodes/${name}/to.json`, { node: name, store: { roster: { directory: "/run/back" } } });
  }
  await put("/run/back/nodes.d/n1.json", { blocks: { lan: [0] } });
  expect((await move(n1)).stderr).toContain("block/lan.2 is n1's, and the files in /run/back do not say so");
  await put("/run/back/nodes.d/n1.json", { blocks: { lan: [0, 2, 5] } });
  expect((await move(n1)).stderr).toContain("give block/lan.5 to n1, and in etcd");
  await put("/run/back/nodes.d/n1.json", { blocks: { lan: [0, 2] } });
  for (const host of hosts) {
    expect(await move(host)).toMatchObject({ code: 0, stderr: "" });
    await follow(host);
    await host.until("lan", (served) => served?.store === "the files in /run/back" && served.blocks.served === 2);
  }
  expect(await leases()).toBe(before);

  // And once more into etcd, which still knows them.
  for (const host of hosts) {
    await host.kill();
    await put(`/run/nodes/${host.name}/to.json`, { node: host.name, store: { etcd: { endpoints: [ENDPOINT] } } });
    expect(await move(host)).toMatchObject({ code: 0, stderr: "" });
    await follow(host);
  }
  for (const host of hosts) {
    await host.until("lan", (served) => served?.store.startsWith("etcd") === true && served.blocks.served === 2);
  }
  expect([await leases(), await cluster.keys("alarm")]).toEqual([before, []]);
  const { code } = await patchbay(
    ["pool", "close", "lan", "--undo", "--config", "/run/nodes/n1/cluster.json"],
    n1.environment,
  );
  expect([code, (await cluster.record("pool/lan"))!["state"]]).toEqual([0, "open"]);
});

test("a block that another has there is refused, and so is what an export is not sure of", async () => {
  await using cluster = await openCluster();
  const { hosts: [n1], run, move, put } = await stage(cluster, { n1: [0, 1] });
  await cluster.write("pool/lan", CLOSED);
  await cluster.write("block/lan.1", { poolBirth: "x", index: 1, owner: { node: "n7", generation: 1, claim: "c" } });
  expect((await move(n1!)).stderr).toContain(`block/lan.1 is n7's in etcd at ${ENDPOINT}, and this host is n1`);
  expect(await cluster.keys("block/")).toEqual(["block/lan.1"]);
  await put("/run/nodes/n1/cluster.json", { node: "n1", store: { etcd: { endpoints: [ENDPOINT] } } });
  const exporting = async (said: string) => {
    const { code, stderr } = await run(n1!, "export", "--to", "/run/out");
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect(await cluster.machine.sh("ls /run/out 2>/dev/null || true")).toBe("");
  };
  await exporting("block/lan.1 is n7's, of a pool that the store has no more");
  await cluster.write("block/lan.1", { poolBirth: 7 });
  await exporting("block/lan.1 is no record");
  await cluster.erase("block/lan.1");
  await cluster.write("alarm", { by: "n9", saw: "a ghost" });
  await exporting("n9 has raised the alarm: a ghost");
});
