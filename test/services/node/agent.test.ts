/**
 * The agent with a real etcd: what it claims, what it tells ADD, and what becomes of both when something goes wrong.
 *
 * Longer than 300 lines: it is one table of what may happen.
 */
import { expect, test } from "bun:test";
import { firstOf, isServing, servedRangesIn } from "../../support/served-pool.ts";
import { untilTrue } from "../../support/until-true.ts";
import { ownShare } from "../../support/share.ts";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";

const LAN = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }] };

const ownersIn = async (cluster: Cluster, pool = "lan") =>
  await Promise.all((await cluster.keys(`block/${pool}.`)).map(async (key) => {
    const owner = (await cluster.record(key))?.["owner"] as { node: string } | undefined;
    return owner?.node;
  }));

const cases: [string, (cluster: Cluster) => Promise<void>][] = [
  [
    "two nodes have a block each; one that is killed goes on with its own, also while the store is away",
    async (cluster) => {
      const n1 = await cluster.node("n1"), n2 = await cluster.node("n2");
      await n1.start();
      await n2.start();
      const first = await n1.until("lan", isServing), second = await n2.until("lan", isServing);
      expect(firstOf(first)).not.toBe(firstOf(second));
      expect((await ownersIn(cluster)).sort()).toEqual(["n1", "n2"]);
      cluster.signalStore("SIGKILL");
      const silent = await n1.until("lan", (served) => served?.silent !== undefined);
      expect(silent.spans).toEqual(first.spans);
      expect(silent.silent!.why).toContain("127.0.0.1:2379");
      await n1.kill();
      await n1.start();
      await Bun.sleep(1000);
      expect((await n1.served("lan"))!.spans).toEqual(first.spans);
      await cluster.startStore();
      const back = await n1.until("lan", (served) => served?.silent === undefined);
      expect(back.spans).toEqual(first.spans);
      expect(await ownersIn(cluster)).toHaveLength(2);
    },
  ],

  ["after a boot nothing is served before the store has confirmed it", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const { spans } = await n1.until("lan", isServing);
    await n1.reboot();
    cluster.signalStore("SIGKILL");
    await n1.start();
    const waiting = await n1.until("lan", (served) => served?.silent !== undefined);
    expect([waiting.blocks, waiting.spans]).toEqual([{ served: 0, ripening: 1, closing: 0, unknown: 0 }, [""]]);
    await cluster.startStore();
    expect((await n1.until("lan", isServing)).spans).toEqual(spans);
    expect(await ownersIn(cluster)).toEqual(["n1"]);
  }],

  [
    "no room where ADD reads: the log says so, and what it could not be told it is told as soon as there is",
    async (cluster) => {
      const n1 = await cluster.node("n1");
      await cluster.machine.sh(`mkdir -p ${n1.run}; mount -t tmpfs -o size=64k,mode=755 tmpfs ${n1.run}`);
      await n1.start();
      await n1.until("lan", isServing);
      await cluster.machine.sh(`! cat /dev/zero > ${n1.run}/flood 2>/dev/null`);
      cluster.signalStore("SIGKILL");
      await cluster.machine.sh("until grep -q 'pool~lan.*[Nn]o space left' /run/nodes/n1/log; do sleep 0.1; done");
      await Bun.sleep(1500);
      expect((await n1.served("lan"))!.silent).toBeUndefined();
      await cluster.machine.sh(`rm ${n1.run}/flood`);
      await n1.until("lan", (served) => served?.silent !== undefined);
    },
  ],

  ["its directory in /run is removed: it ends, and the next one serves the same block", async (cluster) => {
    await cluster.write("pool/lan", { ...LAN, mostBlocks: 1 });
    const n1 = await cluster.node("n1");
    await n1.start();
    const before = await n1.until("lan", isServing);
    await n1.lease("lan", firstOf(before));
    await cluster.machine.sh(`until rm -rf ${n1.run}; do :; done`);
    await cluster.machine.sh("until grep -q 'node~lock has been removed' /run/nodes/n1/log; do sleep 0.1; done");
    await n1.kill();
    await n1.start();
    expect(firstOf(await n1.until("lan", isServing))).toBe(firstOf(before));
  }],

  ["a pool that claims only when ADD wishes", async (cluster) => {
    await cluster.write("pool/lan", { ...LAN, spare: 0 });
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", (served) => served !== undefined);
    await Bun.sleep(1000);
    expect(await cluster.keys("block/")).toEqual([]);
    // Half of one: it counts when it is whole.
    await cluster.machine.sh(`printf '{' > '${n1.run}/wish~lan'`);
    await Bun.sleep(1500);
    expect(await cluster.keys("block/")).toEqual([]);
    await cluster.machine.sh(`printf '}' >> '${n1.run}/wish~lan'`);
    await n1.until("lan", isServing);
    expect(await ownersIn(cluster)).toEqual(["n1"]);
  }],

  [
    "a single address comes to who asks for it, to no other node meanwhile, and goes with its container",
    async (cluster) => {
      // Behind the last block: who has the block around a single address may have given it out before it became one.
      await cluster.write("pool/lan", { ...LAN, singles: ["10.1.0.250"] });
      const n1 = await cluster.node("n1"), n2 = await cluster.node("n2");
      const wish = (host: ClusterHost) =>
        cluster.machine.sh(
          `echo '{"address":"10.1.0.250","at":'$(date +%s.%N)'}' > '${host.run}/w' && mv '${host.run}/w' '${host.run}/wish~lan'`,
        );
      for (const host of [n1, n2]) await host.start();
      for (const host of [n1, n2]) await host.until("lan", isServing);
      await wish(n1);
      await n1.until("lan", (served) => served?.singles?.served[0] === "10.1.0.250");
      await n1.lease("lan", "10.1.0.250");
      await wish(n2);
      const other = await n2.until("lan", (served) => served?.ofOthers?.["10.1.0.250"] !== undefined);
      expect([other.singles, other.ofOthers]).toEqual([{ all: ["10.1.0.250"], served: [] }, { "10.1.0.250": "n1" }]);
      await Bun.sleep(1500);
      await n1.unlease("lan", "10.1.0.250");
      await n1.until("lan", (served) => served?.singles?.served.length === 0);
      // What is told to be n1's no more may be its in the store for a moment yet: as engines do, it is asked for again.
      await untilTrue(
        () => wish(n2).then(() => n2.served("lan")),
        (served) => served?.singles?.served[0] === "10.1.0.250",
      );
    },
  ],

  [
    "a single address in another's block comes to no other node: it may have been given out before",
    async (cluster) => {
      const oneBlock = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", to: "10.1.0.16", blockSize: 16 }] };
      await cluster.write("pool/lan", oneBlock);
      const n1 = await cluster.node("n1"), n2 = await cluster.node("n2");
      await n1.start();
      await n1.until("lan", isServing);
      await cluster.write("pool/lan", { ...oneBlock, singles: ["10.1.0.5"] });
      await n2.start();
      await n2.until("lan", (served) => served !== undefined);
      await cluster.machine.sh(`echo '{"address":"10.1.0.5"}' > '${n2.run}/wish~lan'`);
      const { ofOthers } = await n2.until("lan", (served) => served?.ofOthers !== undefined);
      expect(ofOthers).toEqual({ "10.1.0.5": "n1" });
    },
  ],

  ["a host of the segment that has an address of a block: nobody here gets that address", async (cluster) => {
    await cluster.machine.sh(
      "ip netns add stranger; ip link add seg0 type veth peer name eth0 netns stranger; ip link set seg0 up; " +
        "ip -n stranger link set eth0 up; ip -n stranger address add fd01::5/64 dev eth0 nodad; " +
        "for last in 0 1 2 3 4 5 6 7 8 9; do ip -n stranger address add 10.1.0.$((last * 16 + 5))/24 dev eth0; done",
    );
    const ranges = [{ ...LAN.ranges[0], to: "10.1.0.160" }, { cidr: "fd01::/64", from: "fd01::", blockSize: 16 }];
    await cluster.write("pool/lan", { layout: "flat", ranges, probe: { link: "seg9" } });
    const n1 = await cluster.node("n1");
    await n1.start();
    await cluster.machine.sh("until grep -q 'no link seg9' /run/nodes/n1/log; do sleep 0.1; done");
    expect((await n1.served("lan"))!.blocks.served).toBe(0);
    await n1.kill();
    await cluster.write("pool/lan", { layout: "flat", ranges, probe: { link: "seg0" } });
    await n1.start();
    const served = await n1.until("lan", isServing), { foreign } = served, own = servedRangesIn(served);
    expect(foreign![0]).toMatch(/^10\.1\.0\.(5|21|37|53|69|85|101|117|133|149)$/);
    expect(own.map((range) => range.split("-")[1]!)).not.toContain(foreign![0]!);
    expect(own).toHaveLength(2);
  }],

  ["a node that drains gives back what is empty, and what has leases when they are gone", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const address = firstOf(await n1.until("lan", isServing));
    await n1.lease("lan", address);
    await n1.until("lan", (served) => served?.blocks.served === 2);
    await cluster.write("node/n1", { ...await cluster.record("node/n1"), state: "draining" });
    const draining = await n1.until("lan", (served) => served?.blocks.closing === 1 && served?.blocks.served === 0);
    expect([draining.spans, draining.obstacle]).toEqual([[""], "node n1 is draining"]);
    expect((await ownersIn(cluster)).filter((node) => node === "n1")).toHaveLength(1);
    await n1.unlease("lan", address);
    await n1.until("lan", (served) => served?.blocks.closing === 0);
    expect(await ownersIn(cluster)).toEqual([undefined, undefined]);
  }],

  ["a pool that is closed is given back where it is empty, and claimed of no more", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", isServing);
    await cluster.write("pool/lan", { ...LAN, state: "closed" });
    // Pools are looked at seldom, and at each start.
    await n1.kill();
    await n1.start();
    const closed = await n1.until("lan", (served) => served?.blocks.served === 0 && served.blocks.ripening === 0);
    expect([closed.obstacle, await ownersIn(cluster)]).toEqual(["it is closed", [undefined]]);
  }],

  ["a copy of the disk in another machine is refused, serves nothing and gives nothing back", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", isServing);
    await n1.kill();
    const other = await cluster.record("node/n1");
    await cluster.write("node/n1", { ...other, machine: "another" });
    await n1.reboot();
    await n1.start();
    const refused = await n1.until("lan", (served) => served?.obstacle?.includes("another machine") === true);
    await Bun.sleep(2000);
    expect([refused.blocks.served, await ownersIn(cluster)]).toEqual([0, ["n1"]]);
  }],

  [
    "a second machine with the same name and fingerprint: the living one objects, and the newcomer never serves",
    async (cluster) => {
      const n1 = await cluster.node("n1");
      await n1.start();
      const { spans } = await n1.until("lan", isServing);
      const copy = await cluster.node("copy", { node: "n1" });
      await copy.reboot();
      await cluster.machine.sh(`cp -a ${n1.kept} ${copy.kept}`);
      await copy.start();
      await copy.until("lan", (served) => served?.obstacle?.includes("two machines") === true);
      await n1.until("lan", (served) => served?.obstacle?.includes("two machines") === true);
      await Bun.sleep(12_000);
      expect([(await copy.served("lan"))!.blocks.served, (await n1.served("lan"))!.spans]).toEqual([0, spans]);
      expect(await ownersIn(cluster)).toEqual(["n1"]);
    },
  ],

  [
    "a state directory that is emptied while containers run: its blocks are unknown until the next boot",
    async (cluster) => {
      const n1 = await cluster.node("n1");
      await n1.start();
      await n1.until("lan", isServing);
      const [old] = await cluster.keys("block/");
      await n1.kill();
      await cluster.machine.sh(`rm -rf ${n1.kept}`);
      await n1.start();
      const wiped = await n1.until("lan", (served) => served?.blocks.unknown === 1 && served?.blocks.served === 1);
      const blocks = (await cluster.keys("block/")).filter((key) => key !== old);
      expect([blocks.length, servedRangesIn(wiped).length]).toEqual([1, 1]);
      await n1.reboot();
      await n1.start();
      await n1.until("lan", (served) => served?.blocks.served === 2);
    },
  ],

  ["a removed node that comes back has nothing; one with containers says that it lives", async (cluster) => {
    const n1 = await cluster.node("n1"), n2 = await cluster.node("n2");
    for (const node of [n1, n2]) await node.start();
    const address = firstOf(await n1.until("lan", isServing));
    await n2.until("lan", isServing);
    await n1.lease("lan", address);
    for (const node of [n1, n2]) await node.kill();
    for (const name of ["n1", "n2"]) {
      await cluster.write(`node/${name}`, { ...await cluster.record(`node/${name}`), state: "off" });
    }
    await n2.reboot();
    for (const node of [n1, n2]) await node.start();
    await n2.until("lan", isServing);
    expect(await cluster.record("node/n2")).toMatchObject({ generation: 2, state: "joined" });
    await n1.until("lan", isServing);
    expect(await cluster.record("node/n1")).toMatchObject({ generation: 1, state: "joined" });
  }],

  ["a block that is deleted by hand while it is served: the alarm, and it is put back", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const { spans } = await n1.until("lan", isServing);
    const [key] = await cluster.keys("block/");
    await cluster.erase(key!);
    await cluster.write("node/n1", { ...await cluster.record("node/n1"), heard: "look again" });
    await n1.until("lan", (served) => served?.obstacle?.includes("has raised the alarm") === true);
    expect([await ownersIn(cluster), (await n1.served("lan"))!.spans]).toEqual([["n1"], spans]);
    expect(await cluster.record("alarm")).toEqual({ by: "n1", saw: `${key} is no longer n1's in the store` });
  }],

  ["a node's record that is deleted by hand: the alarm, and it is put back", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", isServing);
    await cluster.erase("node/n1");
    await n1.until("lan", (served) => served?.obstacle?.includes("the record of n1 is gone") === true);
    expect(await cluster.record("node/n1")).toMatchObject({ generation: 1, state: "joined" });
  }],

  [
    "a store that is restored: who lost something says so, puts it back, and nobody claims meanwhile",
    async (cluster) => {
      const n1 = await cluster.node("n1"), n2 = await cluster.node("n2");
      await n2.start();
      await n2.until("lan", isServing);
      await cluster.snapshot("/run/early");
      await n1.start();
      const { spans } = await n1.until("lan", isServing);
      await cluster.restore("/run/early");
      await n1.until("lan", (served) => served?.obstacle?.includes("has raised the alarm") === true);
      expect((await ownersIn(cluster)).sort()).toEqual(["n1", "n2"]);
      const n3 = await cluster.node("n3");
      await n3.start();
      await n3.until("lan", (served) => served?.obstacle?.includes("has raised the alarm") === true);
      await Bun.sleep(11_000);
      expect([(await n3.served("lan"))!.blocks, (await n1.served("lan"))!.spans]).toEqual([
        { served: 0, ripening: 0, closing: 0, unknown: 0 },
        spans,
      ]);
      await cluster.erase("alarm");
      await n3.until("lan", isServing);
      expect((await ownersIn(cluster)).sort()).toEqual(["n1", "n2", "n3"]);
    },
  ],

  ["a store that is wiped: everybody serves what it has, and nobody claims", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const { spans } = await n1.until("lan", isServing);
    cluster.signalStore("SIGKILL");
    await cluster.machine.sh("rm -rf /var/lib/etcd-store");
    await cluster.startStore();
    await n1.until("lan", (served) => served?.obstacle !== undefined && served.silent === undefined);
    expect([(await n1.served("lan"))!.spans, await ownersIn(cluster)]).toEqual([spans, ["n1"]]);
    expect(await cluster.record("alarm")).toBeDefined();
  }],

  ["a store that stands still: what is served stays, and the file says since when", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const { spans } = await n1.until("lan", isServing);
    cluster.signalStore("SIGSTOP");
    const { silent, ...still } = await n1.until("lan", (served) => served?.silent !== undefined);
    expect([still.spans, silent!.since > 0]).toEqual([spans, true]);
    cluster.signalStore("SIGCONT");
    await n1.until("lan", (served) => served?.silent === undefined);
  }],

  ["a pool that is deleted: its blocks are served while they have leases, and then given back", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const address = firstOf(await n1.until("lan", isServing));
    await n1.lease("lan", address);
    await n1.until("lan", (served) => served?.blocks.served === 2);
    await cluster.erase("pool/lan");
    await n1.kill();
    await n1.start();
    const deleted = await n1.until(
      "lan",
      (served) => served?.obstacle === "it is deleted" && served.blocks.served === 1,
    );
    expect([firstOf(deleted), (await ownersIn(cluster)).filter((node) => node === "n1")]).toEqual([address, ["n1"]]);
    await n1.unlease("lan", address);
    await n1.until("lan", (served) => served?.blocks.served === 0);
    expect(await ownersIn(cluster)).toEqual([undefined, undefined]);
  }],

  ["when an alarm is over, what is claimed after it is served", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    const first = await n1.until("lan", isServing), [key] = await cluster.keys("block/");
    await cluster.erase(key!);
    await cluster.write("node/n1", await cluster.record("node/n1"));
    await untilTrue(() => cluster.record("alarm"), (alarm) => alarm !== undefined);
    await untilTrue(() => n1.ask("node check --over"), ({ code }) => code === 0);
    const [from, to] = servedRangesIn(first)[0]!.split("-").map((address) => Number(address.split(".")[3]));
    for (let last = from!; last <= to!; last++) await n1.lease("lan", `10.1.0.${last}`);
    await n1.until("lan", (served) => served?.blocks.served === 2);
  }],

  ["what is no record at the key of one block: the others are served after a boot", async (cluster) => {
    await cluster.write("pool/lan", { ...LAN, spare: 3 });
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", (served) => served?.blocks.served === 3);
    const [key] = await cluster.keys("block/");
    await cluster.write(key!, "rubbish");
    await n1.reboot();
    await n1.start();
    const { silent } = await n1.until("lan", (served) => served?.blocks.served === 2);
    expect(silent).toBeUndefined();
    expect(await n1.said()).toContain(`${key} is no record in the store, and nothing of it is served`);
  }],

  ["another's block of an earlier pool of the name: nothing is claimed, and ADD is told why", async (cluster) => {
    const earlier = { poolBirth: "x", index: 5, owner: { node: "n7", generation: 1, claim: "c" } };
    await cluster.write("block/lan.5", earlier);
    const n1 = await cluster.node("n1");
    await n1.start();
    const { obstacle, isFull } = await n1.until("lan", (served) => served?.obstacle !== undefined);
    expect([obstacle, isFull]).toEqual([
      "nodes have blocks of an earlier pool of this name, which they have to give back first",
      undefined,
    ]);
    await cluster.erase("block/lan.5");
    expect((await n1.until("lan", isServing)).obstacle).toBeUndefined();
  }],

  ["a segment that cannot be asked: ADD is told, and other pools' blocks are served", async (cluster) => {
    await cluster.write("pool/asked", {
      layout: "flat",
      ranges: [{ cidr: "10.2.0.0/24", blockSize: 16 }],
      probe: { link: "nowhere" },
    });
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", isServing);
    const { obstacle, blocks } = await n1.until("asked", (served) => served?.obstacle !== undefined);
    expect([obstacle, blocks.served]).toEqual([expect.stringContaining("there is no link nowhere"), 0]);
    const { probe: _, ...plain } = await cluster.record("pool/asked") as Record<string, unknown>;
    await cluster.write("pool/asked", plain);
    await cluster.machine.sh(`echo '{}' > '${n1.run}/wish~other'`);
    expect((await n1.until("asked", isServing)).obstacle).toBeUndefined();
  }],

  ["another machine is the node by now: what was served is not given out any more", async (cluster) => {
    const n1 = await cluster.node("n1");
    await n1.start();
    await n1.until("lan", isServing);
    await n1.kill();
    await cluster.write("node/n1", { ...await cluster.record("node/n1"), machine: "another" });
    await n1.start();
    const { spans, obstacle } = await n1.until("lan", (served) => served?.blocks.served === 0);
    expect([spans, obstacle]).toEqual([[""], expect.stringContaining("another machine is node n1 in the store")]);
  }],

  ["what is in the store and is no record is named, and nothing of it counts", async (cluster) => {
    await cluster.write("pool/other", {
      layout: "flat",
      ranges: [{ cidr: "10.2.0.0/24", blockSize: 16, surprise: 1 }],
    });
    await cluster.write("pool/text", "no JSON");
    await cluster.write("block/lan.0", { poolBirth: 1, index: 0 });
    await cluster.write("block/lan.1", { poolBirth: "2", index: 7 });
    await cluster.write("block/lan.2", "x".repeat(100_000));
    const n1 = await cluster.node("n1");
    await n1.start();
    const served = await n1.until("lan", isServing);
    expect(["10.1.0.2", "10.1.0.17", "10.1.0.33"]).not.toContain(firstOf(served));
    const said = await n1.said();
    for (const key of ["pool/other", "pool/text"]) expect(said).toContain(`${key} is no record: `);
    expect([await n1.served("other"), await n1.served("text")]).toEqual([undefined, undefined]);
  }],

  ["an own record that is no record: nothing is claimed, and the sentence names it", async (cluster) => {
    await cluster.write("node/n1", { generation: "one" });
    const n1 = await cluster.node("n1");
    await n1.start();
    await cluster.machine.sh(`until grep -q 'node/n1 is no record' /run/nodes/n1/log; do sleep 0.1; done`);
    expect(await cluster.keys("block/")).toEqual([]);
    await cluster.erase("node/n1");
    await n1.until("lan", isServing);
  }],

  ["a full disk: nothing is served that is not written down, and it goes on when there is room", async (cluster) => {
    const n1 = await cluster.node("n1");
    await cluster.machine.sh(
      `mkdir -p ${n1.kept}; chmod 700 ${n1.kept}; mount -t tmpfs -o size=16k,mode=700 tmpfs ${n1.kept}; ` +
        `dd if=/dev/zero of=${n1.kept}/filler bs=1k count=16 2>/dev/null || true`,
    );
    await n1.start();
    await cluster.machine.sh(`until grep -q 'no space' /run/nodes/n1/log; do sleep 0.1; done`);
    expect((await n1.served("lan"))?.blocks.served ?? 0).toBe(0);
    await cluster.machine.sh(`rm ${n1.kept}/filler`);
    await n1.until("lan", isServing);
    expect(await ownersIn(cluster)).toEqual(["n1"]);
  }],
];

test.concurrent.each(ownShare(cases))("%s", async (_, work) => {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", LAN);
  await work(cluster);
});
