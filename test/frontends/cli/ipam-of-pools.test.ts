/** `patchbay ipam show` and `ipam check` with a real etcd, a real agent, and containers: store, grants, leases and ledgers. */
import { expect, test } from "bun:test";
import { firstOf, isServing } from "../../support/served-pool.ts";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

const AT = "etcd at http://127.0.0.1:2379";
const LAN = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }] };

interface Stage {
  cluster: Cluster;
  n1: ClusterHost;
  /** The key of its block. */
  key: string;
  /** The block's first address. */
  first: string;
  container(words: string): Promise<void>;
}

/** A node that serves a block, and a network whose addresses are of it. */
async function onStage(work: (stage: Stage) => Promise<void>): Promise<void> {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", LAN);
  const n1 = await cluster.node("n1"), { machine } = cluster;
  await n1.start();
  const first = firstOf(await n1.until("lan", isServing));
  const ipam = { type: "patchbay-cluster", pool: "lan", dataDir: `${n1.kept}/pools` };
  await writeNetwork(machine, "lan", [{ type: "bridge", bridge: "br0", ipam }]);
  const container = (words: string) =>
    n1.inside(`NETCONFPATH=${CONFIGS} ${PATCHBAY} ${words} >/dev/null`).then(() => {});
  for (const name of ["c1", "c2"]) await machine.container(name);
  const [key] = await cluster.keys("block/lan.");
  await work({ cluster, n1, key: key!, first, container });
}

const ALL_AGREE = { code: 0, stdout: `node n1, ${AT}: all agree\n`, stderr: "" };

test("all agree with a container; leases and containers that nobody explains do not", () =>
  onStage(async ({ cluster, n1, key, first, container }) => {
    await container("add lan c1 --container-id c1");
    const shown = JSON.parse((await n1.ask("ipam show lan --json")).stdout).pools[0].blocks;
    const block = Number(key.split(".").at(-1));
    expect(shown).toContainEqual(expect.objectContaining({ block, state: "served", leased: 1 }));
    await n1.until("lan", (served) => served?.blocks.served === 2);
    expect(await n1.ask("ipam check")).toEqual(ALL_AGREE);
    const leases = `${n1.kept}/pools/lan`, address = (await cluster.machine.sh(`ls ${leases} | grep ^10`)).trim();
    expect(address).toBe(first);
    await cluster.machine.sh(`rm ${leases}/${address}`);
    expect(await n1.ask("ipam check")).toEqual({
      code: 1,
      stdout: `${address}: container c1 has it in network lan, and no lease says so: another may get it\n` +
        "  attach it anew: 'patchbay del lan c1', then add\n",
      stderr: "",
    });
    await container("del lan c1 --container-id c1");
    await container("add lan c1 --container-id c1");
    const other = first.replace(/\d+$/, (last) => String(Number(last) + 5));
    await n1.lease("lan", other);
    const release = `ipam release lan ${other} --data-dir ${leases.replace(/\/lan$/, "")}`;
    expect(await n1.ask("ipam check")).toEqual({
      code: 1,
      stdout: `${other}: container c-${other} (eth0) leases it, and no record knows that container\n` +
        `  when it is gone, 'patchbay ${release}' gives the address back\n`,
      stderr: "",
    });
    // What it says to type does it.
    await n1.inside(`${PATCHBAY} ${release}`);
    expect(await n1.ask("ipam check")).toEqual(ALL_AGREE);
    // Its spare one is anywhere, too.
    const own = await cluster.keys("block/lan."),
      last = [12, 13, 14].find((index) => !own.includes(`block/lan.${index}`))!;
    const foreign = `10.1.0.${1 + 16 * last + 3}`;
    await n1.lease("lan", foreign);
    const { code, stdout } = await n1.ask("ipam check --json");
    expect([code, JSON.parse(stdout).findings]).toEqual([1, [{
      about: foreign,
      problem: `container c-${foreign} (eth0) leases it, in block/lan.${last}, which this host has not been granted`,
      step: "detach the container: another node may give the address out",
    }]]);
  }));

test("the store against what was granted, while no agent runs", () =>
  onStage(async ({ cluster, n1, key, container }) => {
    await container("add lan c1 --container-id c1");
    await n1.kill();
    const START = "  start its agent: 'systemctl start patchbay-node', or 'patchbay node'\n";
    const NO_AGENT = `node/n1: no agent runs on this host\n${START}`;
    const record = (await cluster.record(key))!, own = await cluster.keys("block/lan.");
    const late = ["block/lan.7", "block/lan.8", "block/lan.9"].find((each) => !own.includes(each))!;
    expect(await n1.ask("ipam check")).toMatchObject({ code: 1, stdout: NO_AGENT });
    expect(await n1.sync()).toMatchObject({ code: 0 });
    // Where a timer does that, it is well.
    expect(await n1.ask("ipam check")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^node\/n1: no agent runs on this host\n {2}'patchbay node sync' has done what was due, \d+ s ago\n$/,
      ),
    });
    await n1.inside(`rm ${n1.run}/node~synced`);
    await cluster.erase(key);
    await cluster.write(late, {
      ...record,
      index: Number(late.split(".")[1]),
      owner: { node: "n1", generation: 1, claim: "x" },
    });
    const { stdout } = await n1.ask("ipam check");
    expect(stdout).toBe(
      `${NO_AGENT}${key}: it is nobody's in the store, and containers here have its addresses\n${START}` +
        `${late}: it is this host's in the store, and not granted here: a claim that was answered late\n${START}`,
    );
    await n1.start();
    await untilTrue(() => cluster.record(key), (found) => found?.["owner"] !== undefined);
    // The alarm stays until a person has looked.
    await untilTrue(
      () => n1.ask("ipam check"),
      ({ stdout }) => stdout.startsWith("alarm: ") && !stdout.includes(`${late}:`),
    );
    await untilTrue(() => n1.ask("node check --over"), ({ code }) => code === 0);
    expect(await n1.ask("ipam check")).toEqual(ALL_AGREE);
  }));

test("another node's block, of which containers here have addresses", () =>
  onStage(async ({ cluster, n1, key, container }) => {
    await container("add lan c1 --container-id c1");
    await cluster.write("node/n2", { generation: 1, machine: "m2", boot: "b2", state: "joined" });
    const record = (await cluster.record(key))!;
    await cluster.write(key, { ...record, owner: { node: "n2", generation: 1, claim: "theirs" } });
    await cluster.write("node/n1", await cluster.record("node/n1"));
    await untilTrue(
      () => cluster.record("node/n1"),
      (found) => (found?.["conflicts"] as string[] | undefined)?.[0] === key,
    );
    const { code, stdout } = await n1.ask("ipam check");
    expect(code).toBe(1);
    expect(stdout).toContain(
      `${key}: containers of n1 have its addresses, and the store gives it to another, or to nobody\n` +
        "  'patchbay ipam check' on n1 says which containers: detach them, or those of the other node\n",
    );
    expect(stdout).toContain(
      `${key}: it is n2's in the store, and containers here have its addresses\n` +
        "  the store was restored, or this host was removed while it ran: detach the containers that have its addresses, " +
        "here or on n2\n",
    );
  }));

test("a state directory that is emptied while containers run: their block is known by the ledgers, and put back", () =>
  onStage(async ({ cluster, n1, key, container }) => {
    await container("add lan c1 --container-id c1");
    await n1.kill();
    await cluster.machine.sh(`rm -rf ${n1.kept}/*`);
    await cluster.erase(key);
    await n1.start();
    await untilTrue(() => cluster.record(key), (found) => found?.["owner"] !== undefined);
    const block = Number(key.split(".").at(-1));
    const blocks = await untilTrue(
      async () =>
        (JSON.parse((await n1.ask("ipam show --json")).stdout).pools[0]?.blocks ?? []) as { block: number }[],
      (found) => found.some((each) => each.block === block),
    );
    expect(blocks).toContainEqual(expect.objectContaining({ block, state: "unknown", free: 0 }));
  }));

test("pools that overlap are told, and may be meant so", () =>
  onStage(async ({ cluster, n1 }) => {
    await cluster.write("pool/wan", { layout: "flat", ranges: [{ cidr: "10.1.0.128/25", blockSize: 16 }] });
    const { code, stdout } = await n1.ask("ipam check");
    expect([code, stdout.split("\n")[0]]).toEqual([
      0,
      "pools lan and wan: both have 10.1.0.129-10.1.0.254: right for two segments that do not meet, and wrong on one",
    ]);
  }));
