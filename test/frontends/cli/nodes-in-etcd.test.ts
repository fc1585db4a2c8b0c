/** The commands on nodes with a real etcd and real agents: who is there, how one stands, draining, and the end of an alarm. */
import { expect, test } from "bun:test";
import { firstOf, isServing } from "../../support/served-pool.ts";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";
import { untilTrue } from "../../support/until-true.ts";

const AT = "etcd at http://127.0.0.1:2379";
const LAN = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }] };

async function inCluster(work: (cluster: Cluster) => Promise<void>): Promise<void> {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", LAN);
  await work(cluster);
}

async function serving(cluster: Cluster, ...names: string[]): Promise<ClusterHost[]> {
  const hosts = await Promise.all(names.map((name) => cluster.node(name)));
  await Promise.all(hosts.map(async (host) => {
    await host.start();
    await host.until("lan", isServing);
  }));
  return hosts;
}

/** Without machines and boots, which are this host's. */
const rowsOf = (text: string) =>
  text.split("\n").map((line) => line.replace(/\b[0-9a-f]{8}\b/g, "HASH").replace(/ +/g, " "));

test("nodes, and how one stands; what is wrong has its next step", () =>
  inCluster(async (cluster) => {
    const [n1, n2] = await serving(cluster, "n1", "n2") as [ClusterHost, ClusterHost];
    await cluster.write("node/n3", { generation: 2, machine: "abcdef0123456789", boot: "b", state: "off" });
    const claimed = await cluster.keys("block/lan.");
    const index = [1, 2, 3].find((each) => !claimed.includes(`block/lan.${each}`))!;
    await cluster.write(`block/lan.${index}`, {
      poolBirth: "?",
      index,
      owner: { node: "n3", generation: 2, claim: "c" },
    });
    const listed = await n1.ask("node list");
    expect([listed.code, rowsOf(listed.stdout)]).toEqual([0, [
      "node state generation machine boot blocks",
      "n1 joined 1 HASH HASH lan 1 this host; the same machine as n2",
      "n2 joined 1 HASH HASH lan 1 the same machine as n1",
      "n3 off 2 HASH b - 1 dead block: 'patchbay ipam check'",
      "",
    ]]);
    const checked = await n1.ask("node check");
    expect([checked.code, rowsOf(checked.stdout).slice(0, 5)]).toEqual([0, [
      `node n1, ${AT}`,
      "in the store: joined, generation 1, machine HASH, boot HASH",
      "blocks: 1 of pool lan",
      "its agent runs",
      "pool block addresses state leased free",
    ]]);
    expect(checked.stdout).toEndWith("nothing is wrong\n");
    const other = await n1.ask("node check n2 --json");
    expect(JSON.parse(other.stdout)).toMatchObject({ node: "n2", record: { state: "joined" }, findings: [] });
    expect(JSON.parse(other.stdout).host).toBeUndefined();
    await cluster.write("pool/late", { ...LAN, ranges: [{ cidr: "10.2.0.0/24", blockSize: 16 }] });
    const before = await n1.ask("node check");
    expect([before.code, before.stdout.split("\n").slice(-4)]).toEqual([0, [
      "pool/late: the agent of this host has not seen it yet",
      "  it looks for pools when it starts, and every five minutes",
      "nothing is wrong",
      "",
    ]]);
    await n2.kill();
    const ended = await n2.ask("node check");
    expect([ended.code, ended.stdout.split("\n").slice(-3)]).toEqual([1, [
      "node/n2: no agent runs on this host",
      "  start its agent: 'systemctl start patchbay-node', or 'patchbay node'",
      "",
    ]]);
  }));

test("a pool has no free block", () =>
  inCluster(async (cluster) => {
    await cluster.write("pool/tight", {
      layout: "flat",
      ranges: [{ cidr: "10.3.0.0/24", to: "10.3.0.8", blockSize: 8 }],
    });
    const [n1] = await serving(cluster, "n1") as [ClusterHost];
    await n1.lease("tight", firstOf(await n1.until("tight", isServing)));
    await n1.until("tight", (served) => served?.isFull === true);
    const { code, stdout } = await n1.ask("node check");
    expect(code).toBe(0);
    expect(stdout).toContain("tight: each of its blocks has an owner: 'patchbay pool show tight' says who\n");
  }));

test("a node drains and claims again; what it still has is told", () =>
  inCluster(async (cluster) => {
    const [n1] = await serving(cluster, "n1") as [ClusterHost];
    await n1.lease("lan", firstOf((await n1.served("lan"))!));
    expect((await n1.ask("node drain n1")).stdout).toBe(
      "node n1 is draining: 'patchbay node check n1' says which blocks it still has\n",
    );
    await n1.until("lan", (served) => served?.blocks.closing === 1 && served.blocks.served === 0);
    const { code, stdout } = await n1.ask("node check n1");
    expect([code, rowsOf(stdout).slice(1, 3)]).toEqual([0, [
      "in the store: draining, generation 1, machine HASH, boot HASH",
      "blocks: 1 of pool lan",
    ]]);
    expect(stdout).toContain("lan: no further block comes: node n1 is draining\n");
    expect((await n1.ask("node drain n1")).stdout).toStartWith("node n1 is draining already");
    expect((await n1.ask("node drain n1 --undo")).stdout).toBe("node n1 is joined\n");
    await n1.until("lan", isServing);
    expect((await n1.ask("node drain n1 --undo")).stdout).toBe("node n1 is joined already\n");
    expect(await n1.ask("node drain n4")).toMatchObject({
      code: 1,
      stderr: 'patchbay node: there is no node n4; did you mean "n1"?\n' +
        "  'patchbay node list' lists those that there are\n",
    });
  }));

test("an alarm ends when everybody has looked since, and nobody disagrees", () =>
  inCluster(async (cluster) => {
    const [n1, n2] = await serving(cluster, "n1", "n2") as [ClusterHost, ClusterHost];
    expect((await n1.ask("node check --over")).stdout).toBe("there is no alarm\n");
    await n2.kill();
    // Whatever has lost it: containers of n1 have addresses of it.
    const owners = await Promise.all(
      (await cluster.keys("block/lan.")).map(async (each) => [each, await cluster.record(each)] as const),
    );
    const [own] = owners.find(([, record]) => (record!["owner"] as { node: string }).node === "n1")!;
    await cluster.erase(own);
    await cluster.write("node/n1", await cluster.record("node/n1"));
    await untilTrue(() => cluster.record(own), (record) => record !== undefined);
    await untilTrue(() => cluster.record("node/n1"), (record) => record?.["heard"] !== undefined);
    const listed = await n2.ask("node list");
    expect([listed.code, listed.stdout.split("\n").slice(0, 2)]).toEqual([1, [
      `ALARM: n1 has seen: ${own} is no longer n1's in the store`,
      "  nobody claims or ripens a block before it is over; 'patchbay node check' says what is open",
    ]]);
    const checked = await n2.ask("node check n1");
    expect(checked.stdout).toContain("  open: n2 has not looked since\n");
    expect([checked.code, checked.stdout.split("\n").slice(1, 4)]).toEqual([1, [
      `ALARM: n1 has seen: ${own} is no longer n1's in the store`,
      "  have looked since: n1",
      "  the store knows: n1, n2; start the agent of a node that is missing here",
    ]]);
    const refused = await n1.ask("node check --over");
    expect([refused.code, refused.stdout, refused.stderr.split("\n")[0]]).toEqual([
      1,
      "",
      "patchbay node: the alarm is not over, and stays: n2 has not looked since",
    ]);
    await n2.start();
    await untilTrue(() => cluster.record("node/n2"), (record) => record?.["heard"] !== undefined);
    // Containers of n2 with another's addresses.
    const { conflicts: _, ...record } = (await cluster.record("node/n2"))!;
    await n2.kill();
    await cluster.write("node/n2", { ...record, conflicts: ["block/lan.9"] });
    expect((await n1.ask("node check --over")).stderr).toContain(
      "containers of n2 have addresses of block/lan.9, which the store gives to another, or to nobody",
    );
    await cluster.write("node/n2", record);
    await cluster.write("node/n5", "{}");
    expect((await n1.ask("node check --over")).stderr).toContain("node/n5 is no record: ");
    await cluster.erase("node/n5");
    const before = await n1.ask("node check");
    expect(before.stdout).toContain(
      "everybody has looked, and nobody disagrees: 'patchbay node check --over' takes it away",
    );
    expect(await n1.ask("node check --over")).toEqual({
      code: 0,
      stdout: "the alarm is over, and taken away: nodes claim again\n",
      stderr: "",
    });
    expect(await cluster.record("alarm")).toBeUndefined();
  }));

test("a store that does not answer: what this host has is told all the same", () =>
  inCluster(async (cluster) => {
    const [n1] = await serving(cluster, "n1") as [ClusterHost];
    cluster.signalStore("SIGKILL");
    const { code, stdout, stderr } = await n1.ask("node check"), lines = rowsOf(stdout);
    expect([code, stderr, lines.slice(0, 3)]).toEqual([1, "", [
      `node n1, ${AT}`,
      "its agent runs",
      "pool block addresses state leased free",
    ]]);
    expect(stdout).toContain(`store: ${AT}: http://127.0.0.1:2379: nothing listens there (connection refused)`);
    const shown = await n1.ask("ipam show");
    expect([shown.code, shown.stdout.split("\n")[0]]).toEqual([0, `node n1, ${AT}`]);
    expect(await n1.ask("ipam check")).toMatchObject({ code: 1, stdout: "" });
  }));

test("what others have written is shown, and not obeyed by a terminal", () =>
  inCluster(async (cluster) => {
    const n1 = await cluster.node("n1");
    const evil = "n9\u001b[31m\u009b2J\r\n\u0007";
    await cluster.write("alarm", { by: evil, saw: evil });
    await cluster.write("node/n2", { generation: 1, machine: evil, boot: evil, state: "joined", conflicts: [evil] });
    await cluster.write("block/lan.0", {
      poolBirth: evil,
      index: 0,
      owner: { node: evil, generation: 1, claim: evil },
    });
    await cluster.write("block/lan.1", {
      poolBirth: "1",
      index: 1,
      owner: { node: "x".repeat(4000), generation: 1, claim: "" },
    });
    await cluster.write("node/n3", { generation: 1, machine: "m", boot: "b", state: "gone" });
    await cluster.write("block/lan.2", { poolBirth: "1", index: 3 });
    for (
      const words of [
        "node list",
        "node check",
        "node check n2",
        "pool show lan",
        "pool list",
        "ipam show --all",
        "ipam check",
        "node check --over",
      ]
    ) {
      const { stdout, stderr } = await n1.ask(words);
      // deno-lint-ignore no-control-regex
      const raw = /[\0-\x09\x0b-\x1f\x7f-\x9f]/.test(stdout + stderr);
      const isLong = stdout.split("\n").some((line) => line.length > 400);
      expect({ words, raw, isLong, lines: stderr.split("\n").length < 4 }).toEqual({
        words,
        raw: false,
        isLong: false,
        lines: true,
      });
    }
    const list = await n1.ask("node list");
    expect(list.code).toBe(1);
    expect(list.stdout).toContain(
      'node/n3 is no record: "state" is none of joined, draining, off; nothing of it counts\n',
    );
    const { code, stdout } = await n1.ask("ipam check");
    expect(code).toBe(1);
    expect(stdout).toContain('node/n3: it is no record: "state" is none of joined, draining, off\n');
    expect(stdout).toContain('block/lan.2: it is no record: "index" is 3\n');
    for (const words of ["node list --json", "node check n2 --json", "pool show lan --json", "ipam check --json"]) {
      JSON.parse((await n1.ask(words)).stdout);
    }
  }));
