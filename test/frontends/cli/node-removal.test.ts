/**
 * `patchbay node remove` and `node replace` with a real etcd and real agents: the whole minute in which a node may object, in
 * each case at the same time.
 */
import { beforeAll, expect, test } from "bun:test";
import { firstOf, isServing } from "../../support/served-pool.ts";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";
import { untilTrue } from "../../support/until-true.ts";

const LAN = { layout: "flat", ranges: [{ cidr: "10.1.0.0/22", gateway: "10.1.0.1", blockSize: 16 }] };

interface Stage {
  cluster: Cluster;
  /** Whose host is no node yet. */
  person: ClusterHost;
  serving(name: string): Promise<ClusterHost>;
  /** With the generation in which it has it. */
  blocksOf(node: string): Promise<[key: string, generation: number][]>;
  lastNodeOf(key: string): Promise<unknown>;
}

async function onStage(work: (stage: Stage) => Promise<void>): Promise<void> {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", LAN);
  await work({
    cluster,
    person: await cluster.node("person"),
    async serving(name) {
      const host = await cluster.node(name);
      await host.start();
      await host.until("lan", isServing);
      return host;
    },
    async blocksOf(node) {
      const keys = await cluster.keys("block/lan.");
      const owned = await Promise.all(keys.map(async (key) => {
        const owner = (await cluster.record(key))?.["owner"] as { node: string; generation: number } | undefined;
        return owner?.node === node ? [[key, owner.generation] as [string, number]] : [];
      }));
      return owned.flat();
    },
    lastNodeOf: async (key) => (await cluster.record(key))?.["lastNode"],
  });
}

const mark = (node: string) =>
  `patchbay node: node ${node} is marked off, and has 90 s to object; when this is interrupted, repeat it\n`;
const lives = (node: string) =>
  `patchbay node: node ${node} lives: it has put its record back; nothing of it is freed\n` +
  `  'patchbay node drain ${node}' empties it; or stop it, and repeat the command\n`;

const cases: Record<string, (stage: Stage) => Promise<void>> = {
  "a machine that is off: its blocks are free for others, and it comes back as the next generation": async (
    { cluster, person, serving, blocksOf, lastNodeOf },
  ) => {
    const dead = await serving("dead"), [[key]] = await blocksOf("dead") as [[string, number]];
    await dead.kill();
    expect(await person.ask("node remove dead")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^patchbay node: node dead is joined, and is not removed without a person's word\n {2}--it-is-off /,
      ),
    });
    expect(await person.ask("node remove dead --it-is-off")).toEqual({
      code: 0,
      stdout: "node dead is removed: 1 block freed\n",
      stderr: mark("dead"),
    });
    expect([await blocksOf("dead"), await lastNodeOf(key)]).toEqual([[], "dead"]);
    expect(await cluster.record("node/dead")).toMatchObject({ state: "off", generation: 1 });
    expect((await person.ask("node drain dead")).stderr).toContain("is off by a person's word");
    await dead.reboot();
    await dead.start();
    await dead.until("lan", isServing);
    expect(await cluster.record("node/dead")).toMatchObject({ state: "joined", generation: 2 });
    expect((await blocksOf("dead")).map(([, generation]) => generation)).toEqual([2]);
  },

  "who runs with containers objects, and keeps all": async ({ cluster, person, serving, blocksOf }) => {
    const alive = await serving("alive");
    await alive.lease("lan", firstOf((await alive.served("lan"))!));
    await alive.until("lan", (served) => served?.blocks.served === 2);
    const before = await blocksOf("alive");
    expect(await person.ask("node remove alive --it-is-off")).toEqual({
      code: 1,
      stdout: "",
      stderr: mark("alive") + lives("alive"),
    });
    expect(await cluster.record("node/alive")).toMatchObject({ state: "joined", generation: 1 });
    expect(await blocksOf("alive")).toEqual(before);
  },

  "who runs without containers gives up all, and joins anew": async ({ person, serving, blocksOf }) => {
    const idle = await serving("idle");
    expect((await person.ask("node remove nobody --it-is-off")).stderr).toStartWith(
      "patchbay node: there is no node nobody\n",
    );
    const { code, stdout, stderr } = await person.ask("node remove idle --it-is-off");
    expect([code, stderr]).toEqual([1, mark("idle")]);
    expect(stdout).toStartWith(
      "node idle runs: it has given up all that it had, and joined anew without containers; ",
    );
    await idle.until("lan", isServing);
    expect((await blocksOf("idle")).map(([, generation]) => generation)).toEqual([2]);
  },

  "a node of which only blocks are known": async ({ cluster, person, serving, blocksOf, lastNodeOf }) => {
    const lost = await serving("lost"), [[key]] = await blocksOf("lost") as [[string, number]];
    await lost.kill();
    await cluster.erase("node/lost");
    expect((await person.ask("node remove lost")).stderr).toStartWith(
      "patchbay node: node lost has no record, and is not",
    );
    expect(await person.ask("node remove lost --it-is-off")).toEqual({
      code: 0,
      stdout: "node lost is removed: 1 block freed\n",
      stderr: "patchbay node: node lost has no record: whoever runs writes it again within 90 s\n",
    });
    expect(await lastNodeOf(key)).toBe("lost");
    // It comes back as a machine that nobody knows, and says what to do.
    await lost.reboot();
    await lost.start();
    await untilTrue(() => lost.said(), (said) => said.includes("node lost is refused"));
    expect((await lost.ask("node check")).stdout).toContain(
      "in the store it is a machine that nobody knows; this host is machine ",
    );
  },

  "a node without a record that lives": async ({ cluster, person, serving, blocksOf }) => {
    const there = await serving("there");
    await there.kill();
    await cluster.erase("node/there");
    const removing = person.ask("node remove there --it-is-off");
    await Bun.sleep(3000);
    await there.start();
    const { code, stderr } = await removing;
    expect([code, stderr]).toEqual([
      1,
      "patchbay node: node there has no record: whoever runs writes it again within 90 s\n" + lives("there"),
    ]);
    expect(await blocksOf("there")).toHaveLength(1);
  },

  "a removal that is interrupted is repeated; what an earlier one has not freed needs no word": async (
    { cluster, person, serving, blocksOf },
  ) => {
    const cut = await serving("cut");
    await cut.kill();
    const first = await cluster.machine.run([
      "sh",
      "-c",
      `${person.line("node remove cut --it-is-off")} & sleep 3; kill $!; wait $!`,
    ]);
    expect(first.stdout).toBe("");
    expect(await cluster.record("node/cut")).toMatchObject({ state: "off" });
    expect(await blocksOf("cut")).toHaveLength(1);
    expect((await person.ask("node remove cut")).stderr).toStartWith(
      "patchbay node: node cut is off, and is not removed",
    );
    // It comes back before anybody has freed its blocks.
    await cut.reboot();
    await cut.start();
    await untilTrue(() => cluster.record("node/cut"), (record) => record?.["generation"] === 2);
    expect((await person.ask("ipam check")).stdout).toContain(
      "'patchbay node remove cut' frees them, and nothing else",
    );
    expect(await person.ask("node remove cut")).toEqual({
      code: 0,
      stdout: "node cut is not removed; from before an earlier removal: 1 block freed\n",
      stderr: "",
    });
    await cut.until("lan", isServing);
    expect((await blocksOf("cut")).map(([, generation]) => generation)).toEqual([2]);
  },

  "while the store is silent nobody could object: the time begins anew": async ({ cluster, person, serving }) => {
    const gone = await serving("gone");
    await gone.kill();
    const removing = person.ask("node remove gone --it-is-off");
    await untilTrue(() => cluster.record("node/gone"), (record) => record?.["state"] === "off");
    cluster.signalStore("SIGSTOP");
    await Bun.sleep(3000);
    cluster.signalStore("SIGCONT");
    const { code, stdout, stderr } = await removing, lines = stderr.trimEnd().split("\n");
    expect([code, stdout, lines.length]).toEqual([0, "node gone is removed: 1 block freed\n", 2]);
    expect(lines[1]).toMatch(/^patchbay node: http:\/\/127\.0\.0\.1:2379: .*: the time to object begins anew$/);
  },

  "another machine is the node from now on, with nothing of the old one": async (
    { cluster, serving, blocksOf },
  ) => {
    const old = await serving("old"), [[key]] = await blocksOf("old") as [[string, number]];
    await old.kill();
    // With its disk.
    const spare = await cluster.node("spare", { node: "old" });
    await spare.becomeMachine("00000000000000000000000000000002");
    await cluster.machine.sh(`cp -a ${old.kept} ${spare.kept}`);
    await spare.start();
    await untilTrue(() => spare.said(), (said) => said.includes("node old is refused"));
    expect((await spare.served("lan"))!.obstacle).toContain("another machine is node old in the store");
    expect((await spare.ask("node replace person --it-is-off")).stderr).toStartWith(
      "patchbay node: this host is node old, and not person\n",
    );
    const unsaid = await spare.ask("node replace old");
    expect([unsaid.code, unsaid.stderr.split("\n")[0]]).toEqual([
      1,
      expect.stringMatching(
        /^patchbay node: node old is machine [0-9a-f]{8} in the store, and is not replaced without a person's word$/,
      ),
    ]);
    expect(await spare.ask("node replace old --it-is-off")).toEqual({
      code: 0,
      stdout:
        "node old is this machine now, and begins without blocks; 1 block freed; start its agent: 'patchbay node'\n",
      stderr: mark("old"),
    });
    await spare.until("lan", isServing);
    expect((await blocksOf("old")).map(([, generation]) => generation)).toEqual([2]);
    expect([[undefined, "old"], ["old", "old"]]).toContainEqual([ownerIn(await cluster.record(key)), "old"]);
    // The old machine runs again: it is nobody, and serves nothing.
    await old.reboot();
    await old.start();
    await untilTrue(async () => (await old.said()).split("node old is refused").length, (count) => count > 1);
    expect((await old.served("lan"))!.blocks.served).toBe(0);
  },

  "the machine itself, with another network card: its containers keep their addresses": async (
    { cluster, serving, blocksOf },
  ) => {
    const card = await serving("card"), before = await blocksOf("card");
    await card.lease("lan", firstOf((await card.served("lan"))!));
    await card.kill();
    await card.becomeMachine("00000000000000000000000000000003");
    await card.start();
    await untilTrue(() => card.said(), (said) => said.includes("node card is refused"));
    const outcome = await card.ask("node replace card --it-is-off");
    expect(outcome).toMatchObject({ code: 0, stderr: mark("card") });
    expect(outcome.stdout).toStartWith("node card is this machine now, with the blocks that it had: ");
    const record = await untilTrue(() => cluster.record("node/card"), (record) => record?.["state"] === "joined");
    expect(record).toMatchObject({ generation: 1 });
    expect(await blocksOf("card")).toEqual(expect.arrayContaining(before));
    await card.until("lan", isServing);
    expect((await card.ask("node replace card --it-is-off")).stderr).toStartWith(
      "patchbay node: node card is this machine already\n",
    );
  },

  "two machines with one fingerprint: the one that stays is the node again": async ({ cluster, person, serving }) => {
    const twin = await serving("twin");
    const copy = await cluster.node("copy", { node: "twin" });
    await copy.reboot();
    await cluster.machine.sh(`cp -a ${twin.kept} ${copy.kept}`);
    await copy.start();
    await untilTrue(() => cluster.record("node/twin"), (record) => record?.["isContested"] === true);
    const list = await person.ask("node list");
    expect([list.code, list.stdout]).toEqual([1, expect.stringContaining("contested: 'patchbay node check twin'")]);
    expect((await person.ask("node check twin")).stdout).toContain(
      "node/twin: two machines that run say that they are this node\n" +
        "  stop one of them; then 'patchbay node replace twin --it-is-off' on the other\n",
    );
    // Both run: the other one objects.
    expect(await twin.ask("node replace twin --it-is-off")).toEqual({
      code: 1,
      stdout: "",
      stderr: "patchbay node: node twin is this machine; another that is it, too, has 90 s to object\n" +
        lives("twin"),
    });
    await copy.kill();
    const outcome = await twin.ask("node replace twin --it-is-off");
    expect(outcome.stdout).toStartWith("node twin is this machine now, with the blocks that it had: ");
    expect(outcome.code).toBe(0);
    const record = (await cluster.record("node/twin"))!;
    expect([record["isContested"], record["generation"], record["state"]]).toEqual([undefined, 1, "joined"]);
  },
};

function ownerIn(record: Record<string, unknown> | undefined): string | undefined {
  return (record?.["owner"] as { node: string } | undefined)?.node;
}

/** All at once: each waits for a minute and a half. */
const outcomes = new Map(
  Object.entries(cases).map(([name, work]) => [name, { work, done: undefined as Promise<unknown> | undefined }]),
);

beforeAll(() => {
  for (const one of outcomes.values()) one.done = onStage(one.work).then(() => undefined, (error: unknown) => error);
});

test.each([...outcomes.keys()])("%s", async (name) => {
  const error = await outcomes.get(name)!.done;
  if (error !== undefined) throw error;
});
