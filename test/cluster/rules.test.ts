/**
 * The protocol's rules, each by itself: what a node makes of its record, of a block's, and of an alarm.
 *
 * Longer than 300 lines: it has every rule, with one small store for all.
 */
import { describe, expect, test } from "bun:test";
import { claimBlock, claimThis, releaseBlock, ripenBlock, verifyNode } from "../../src/cluster/blocks.ts";
import type { BootNotes, ClusterEffect, ClusterRecord, KeptState, PutOutcome } from "../../src/cluster/effects.ts";
import { ClusterNode } from "../../src/cluster/node.ts";
import { ALARM_KEY, type BlockRecord, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import { freeBlocksOf, markOff, markUnrecordedOff } from "../../src/cluster/removal.ts";

const SELF = { node: "n1", machine: "m1", boot: "b2" }, POOL = { name: "p", birth: "1", size: 2 };
const MINE: NodeRecord = { generation: 3, machine: "m1", boot: "b2", state: "joined" };
const KEPT: KeptState = { generation: 3, boots: ["b1", "b2"], grants: [], seen: 0 };
const JOINED: BootNotes = { hasJoined: true, ripe: [] };
const own = { node: "n1", generation: 3, claim: "c" };
const block = (more: Partial<BlockRecord> = {}): BlockRecord => ({ poolBirth: "1", index: 0, ...more });
const KEY = "block/p.0", GRANT = { key: KEY, claim: "c", state: "held" as const, version: 1 };

interface Given {
  records?: Record<string, ClusterRecord>;
  kept?: Partial<KeptState>;
  notes?: Partial<BootNotes>;
  used?: string[];
  /** Instead of the store's own answers to puts, one after the other. */
  puts?: PutOutcome<ClusterRecord>[];
  isGoing?: boolean;
  /** How long each answer of the store takes. */
  slowness?: number;
}

/** A store that answers at once, with a clock that a test moves. */
function open({ records = {}, kept, notes, used = [], puts = [], isGoing = false, slowness = 0 }: Given) {
  const stored = new Map<string, Stored<ClusterRecord>>();
  let version = 1, time = 0, claims = 0;
  const set = (key: string, value: ClusterRecord) => {
    const record = { key, value, version: ++version, birth: "1", isGoing };
    stored.set(key, record);
    return record;
  };
  for (const [key, value] of Object.entries(records)) set(key, value);
  const node = new ClusterNode(SELF, { notice: 2, ripening: 10 }, { ...KEPT, ...kept }, { ...JOINED, ...notes });
  const answer = (effect: ClusterEffect): unknown => {
    if (effect.does === "read" || effect.does === "put") time += slowness;
    switch (effect.does) {
      case "read":
        return stored.get(effect.key);
      case "list":
        return { blocks: [...stored.values()].filter(({ key }) => key.startsWith("block/")), revision: version };
      case "put": {
        const said = puts.shift();
        if (said !== undefined) return said;
        return stored.get(effect.key)?.version === effect.was?.version
          ? { won: set(effect.key, effect.value) }
          : "lost";
      }
      case "look for use":
        return used;
      case "look at the clock":
        return time;
      case "name a claim":
        return `new${++claims}`;
      default:
        return undefined;
    }
  };
  return {
    node,
    valueOf: (key: string) => stored.get(key)?.value,
    pass: (span: number) => void (time += span),
    run<Result>(steps: Generator<ClusterEffect, Result, unknown>): Result {
      let { value, done } = steps.next();
      while (!done) ({ value, done } = steps.next(answer(value as ClusterEffect)));
      return value as Result;
    },
  };
}

const RECORD = "node/n1";

describe("joining", () => {
  test.each<[string, Given, string, Partial<NodeRecord> | undefined]>([
    ["nobody has the record", { kept: { generation: 0, boots: [] }, notes: { hasJoined: false } }, "joined", {
      generation: 1,
      boot: "b2",
    }],
    ["it is mine", { records: { [RECORD]: MINE } }, "joined", MINE],
    ["of an earlier boot of mine", { records: { [RECORD]: { ...MINE, boot: "b1" } } }, "joined", MINE],
    [
      "of a boot that I do not know, in one that has not joined yet",
      { records: { [RECORD]: { ...MINE, boot: "bx" } }, notes: { hasJoined: false } },
      "joined",
      MINE,
    ],
    [
      "of a boot that I do not know: somebody else is me",
      { records: { [RECORD]: { ...MINE, boot: "bx" } } },
      "contested",
      { boot: "bx", isContested: true },
    ],
    ["another machine's", { records: { [RECORD]: { ...MINE, machine: "m2" } } }, "refused", { machine: "m2" }],
    [
      "off, and a container runs: it lives",
      { records: { [RECORD]: { ...MINE, state: "off" } }, used: [KEY] },
      "joined",
      { ...MINE, state: "joined" },
    ],
    [
      "off, and nothing runs: the next generation",
      { records: { [RECORD]: { ...MINE, state: "off" } }, kept: { grants: [GRANT] } },
      "joined",
      { generation: 4 },
    ],
    ["draining", { records: { [RECORD]: { ...MINE, state: "draining" } } }, "draining", { state: "draining" }],
  ])("%s", (_, given, standing, record) => {
    const { node, run, valueOf } = open(given);
    run(node.join());
    expect([node.standing, valueOf(RECORD)]).toMatchObject([standing, record!]);
    expect(valueOf(ALARM_KEY)).toBeUndefined();
  });

  test.each<[string, Given]>([
    ["the record of one who had joined is gone", {}],
    ["the record is of an earlier generation", { records: { [RECORD]: { ...MINE, generation: 2 } } }],
  ])("%s: an alarm, and it is put back", (_, given) => {
    const { node, run, valueOf } = open(given);
    run(node.join());
    expect(valueOf(ALARM_KEY)).toMatchObject({ by: "n1" });
    expect(valueOf(RECORD)).toMatchObject(MINE);
  });

  test("a removed node has no grant of before, and takes none of before", () => {
    const { node, run } = open({
      records: { [RECORD]: { ...MINE, state: "off" } },
      kept: { grants: [GRANT] },
      notes: { ripe: ["c"] },
    });
    run(node.join());
    expect([node.held.grants, node.held.generation, node.notes.ripe]).toEqual([[], 4, []]);
  });

  test("with a new boot the containers are gone of which nobody knew: their blocks are held", () => {
    const unknown = { ...GRANT, state: "unknown" as const };
    const { node, run } = open({
      records: { [RECORD]: { ...MINE, boot: "b1" } },
      kept: { boots: ["b1"], grants: [unknown] },
      notes: { hasJoined: false },
    });
    run(node.join());
    expect(node.held.grants).toEqual([GRANT]);
    const same = open({ records: { [RECORD]: MINE }, kept: { grants: [unknown] } });
    same.run(same.node.join());
    expect(same.node.held.grants).toEqual([unknown]);
  });

  test("a put that was lost, and one that nobody answered, are looked at again", () => {
    const { node, run, valueOf } = open({
      records: { [RECORD]: { ...MINE, boot: "b1" } },
      puts: ["lost", "unknown"],
    });
    run(node.join());
    expect([node.standing, valueOf(RECORD)]).toEqual(["joined", MINE]);
  });

  test("a store that refuses is said to be silent", () => {
    const { node, run } = open({ kept: { generation: 0 }, puts: ["refused"] });
    expect(() => run(node.join())).toThrow("node/n1 cannot be written");
  });
});

function joined(given: Given) {
  const world = open({ ...given, records: { [RECORD]: MINE, ...given.records } });
  world.run(world.node.join());
  return world;
}

describe("claiming", () => {
  test("nothing beside blocks of an earlier pool of that name, also not by number", () => {
    const earlier = { ["block/p.1"]: block({ index: 1, poolBirth: "0", owner: { ...own, node: "n2" } }) };
    const world = open({ records: { [RECORD]: MINE, ...earlier } });
    world.run(world.node.join());
    expect(world.run(claimBlock(world.node, POOL))).toBeUndefined();
    expect(world.run(claimThis(world.node, POOL, 0))).toBeUndefined();
    expect(world.valueOf(KEY)).toBeUndefined();
  });

  test("a pool of a million blocks is drawn from, and not looked through", () => {
    const world = open({ records: { [RECORD]: MINE } });
    world.run(world.node.join());
    expect(world.run(claimBlock(world.node, { ...POOL, size: 1 << 20 }))).toStartWith("block/p.");
  });
});

describe("ripening", () => {
  const held: Given = { records: { [KEY]: block({ owner: own }) }, kept: { grants: [GRANT] } };
  const ripens = (given: Given, before: (world: ReturnType<typeof joined>) => void = () => {}) => {
    const world = joined(given);
    world.pass(10);
    before(world);
    return world.run(ripenBlock(world.node, world.node.held.grants[0]!));
  };

  test("after the wait, where everything is mine", () => expect(ripens(held)).toBe(true));
  test("not before", () => expect(ripens(held, ({ pass }) => pass(-1))).toBe(false));
  test.each<[string, Given]>([
    ["an alarm", { ...held, records: { ...held.records, [ALARM_KEY]: { by: "n2", saw: "" } } }],
    ["a block that is free", { ...held, records: { [KEY]: block() } }],
    ["another node's block", { ...held, records: { [KEY]: block({ owner: { ...own, node: "n2" } }) } }],
    ["a block of an earlier generation", {
      ...held,
      records: { [KEY]: block({ owner: { ...own, generation: 2 } }) },
    }],
    ["another claim", { ...held, records: { [KEY]: block({ owner: { ...own, claim: "d" } }) } }],
    ["a block that somebody deletes", { ...held, isGoing: true }],
    ["a block that containers may have", { ...held, kept: { grants: [{ ...GRANT, state: "unknown" }] } }],
  ])("not with %s", (_, given) => expect(ripens(given)).toBe(false));
  test.each<[string, Partial<NodeRecord>]>([
    ["of another boot", { boot: "bx" }],
    ["contested", { isContested: true }],
    ["off", { state: "off" }],
    ["of another generation", { generation: 4 }],
  ])("not when the record is %s meanwhile", (_, other) => {
    const changes = ({ run }: ReturnType<typeof joined>) =>
      void run((function* () {
        yield {
          does: "put",
          key: RECORD,
          was: (yield { does: "read", key: RECORD }) as Stored<NodeRecord>,
          value: { ...MINE, ...other },
        };
      })());
    expect(ripens(held, changes)).toBe(false);
  });
});

test("whoever reads for too long has seen too old things to ripen by", () => {
  const world = joined({ records: { [KEY]: block({ owner: own }) }, kept: { grants: [GRANT] }, slowness: 1 });
  world.pass(10);
  expect(world.run(ripenBlock(world.node, GRANT))).toBe(false);
});

test("a claim whose answer took long waits as after a connection", () => {
  const world = joined({ slowness: 3 }), before = world.node.quietSince!;
  world.run(claimBlock(world.node, POOL));
  expect(world.node.quietSince).toBeGreaterThan(before);
});

test("whoever cannot confirm who it is begins its wait anew", () => {
  const puts: PutOutcome<ClusterRecord>[] = [], { node, run } = joined({ puts });
  node.held = { ...node.held, generation: 4 };
  puts.push(...Array.from({ length: 99 }, () => "lost" as const));
  expect(() => run(node.join())).toThrow("cannot be written");
  expect(node.quietSince).toBeUndefined();
});

describe("claiming", () => {
  test("what was never used comes first, and another one's is left alone", () => {
    const { node, run, valueOf } = joined({ records: { [KEY]: block({ lastNode: "n2" }) } });
    expect([
      run(claimBlock(node, POOL)),
      run(claimBlock(node, POOL)),
      run(claimBlock(node, POOL)),
    ])
      .toEqual(["block/p.1", KEY, undefined]);
    expect(valueOf(KEY)).toMatchObject({ owner: { node: "n1", generation: 3, claim: "new2" } });
  });

  test("a put that nobody answered is mine when its claim is there", () => {
    const world = joined({ records: { "block/p.1": block({ index: 1, owner: { ...own, node: "n2" } }) }, puts: [] });
    const late: ClusterEffect[] = [];
    const steps = claimBlock(world.node, POOL);
    const found = world.run((function* () {
      let { value, done } = steps.next();
      while (!done) {
        const effect = value as ClusterEffect, answer: unknown = yield effect;
        if (effect.does === "put") late.push(effect);
        ({ value, done } = steps.next(effect.does === "put" ? "unknown" : answer));
      }
      return value;
    })());
    expect([found, late.length, world.node.held.grants]).toMatchObject([KEY, 1, [{
      key: KEY,
      claim: "new1",
      state: "held",
    }]]);
  });

  test.each<[string, Given]>([
    ["an alarm", { records: { [ALARM_KEY]: { by: "n2", saw: "" } } }],
    ["a node that drains", { records: { [RECORD]: { ...MINE, state: "draining" } } }],
    ["a contested one", { records: { [RECORD]: { ...MINE, isContested: true } } }],
  ])("nothing with %s", (_, given) => {
    const { node, run } = joined(given);
    expect(run(claimBlock(node, POOL))).toBeUndefined();
  });
});

describe("releasing", () => {
  const served: Given = {
    records: { [KEY]: block({ owner: own }) },
    kept: { grants: [GRANT] },
    notes: { ripe: ["c"] },
  };

  test("what is free of containers is free for others, and no longer served", () => {
    const { node, run, valueOf } = joined(served);
    expect(run(releaseBlock(node, GRANT))).toBe(true);
    expect([node.held.grants, node.notes.ripe, valueOf(KEY)]).toEqual([[], [], block({ lastNode: "n1" })]);
  });

  test("with a container it is closed, not released", () => {
    const { node, run, valueOf } = joined({ ...served, used: [KEY] });
    expect(run(releaseBlock(node, GRANT))).toBe(false);
    expect([node.held.grants[0]!.state, valueOf(KEY)]).toMatchObject(["closing", { owner: own }]);
    expect(node.isServed(node.held.grants[0]!)).toBe(false);
  });

  test("what has not ripened in this boot is not given away: the disk may be a copy", () => {
    const { node, run, valueOf } = joined({ ...served, notes: { ripe: [] } });
    expect([run(releaseBlock(node, GRANT)), valueOf(KEY)]).toMatchObject([false, { owner: own }]);
  });

  test("who is somebody else by now releases nothing", () => {
    const { node, run, valueOf } = joined(served);
    run(
      (function* () {
        const was = (yield { does: "read", key: RECORD }) as Stored<NodeRecord>;
        yield { does: "put", key: RECORD, was, value: { ...MINE, boot: "bx" } };
      })(),
    );
    expect([run(releaseBlock(node, GRANT)), valueOf(KEY)]).toMatchObject([false, { owner: own }]);
  });

  test("a put that nobody answered leaves it closed, to be looked at again", () => {
    const { node, run } = joined({ ...served, puts: ["unknown"] });
    expect([run(releaseBlock(node, GRANT)), node.held.grants[0]!.state]).toEqual([false, "closing"]);
    expect([run(releaseBlock(node, node.held.grants[0]!)), node.held.grants]).toEqual([true, []]);
  });
});

describe("verifying", () => {
  const verified = (given: Given) => {
    const world = joined(given);
    world.run(verifyNode(world.node, [POOL]));
    return world;
  };

  test("a late claim of mine is taken", () => {
    expect(verified({ records: { [KEY]: block({ owner: own }) } }).node.held.grants).toMatchObject([{
      key: KEY,
      state: "held",
    }]);
  });

  test("after the state directory was emptied in this boot, containers may have its addresses", () => {
    const { node } = verified({ records: { [KEY]: block({ owner: own }) }, kept: { generation: 0, boots: [] } });
    expect(node.held.grants).toMatchObject([{ key: KEY, state: "unknown" }]);
  });

  test("what is another's, and nobody uses, is dropped", () => {
    const { node, valueOf } = verified({
      records: { [KEY]: block({ owner: { ...own, node: "n2" } }) },
      kept: { grants: [GRANT] },
    });
    expect([node.held.grants, valueOf(ALARM_KEY)]).toEqual([[], undefined]);
  });

  test("what containers use and the store has lost is put back, with an alarm", () => {
    const { valueOf } = verified({ kept: { grants: [GRANT] }, used: [KEY] });
    expect([valueOf(KEY), valueOf(ALARM_KEY)]).toMatchObject([{ owner: own }, { by: "n1" }]);
  });

  test("what containers use and another node has is a conflict, and stays the other's", () => {
    const { node, valueOf } = verified({
      records: { [KEY]: block({ owner: { ...own, node: "n2" } }) },
      kept: { grants: [GRANT] },
      used: [KEY],
    });
    expect([[...node.conflicts], valueOf(KEY)]).toMatchObject([[[KEY, "n2"]], { owner: { node: "n2" } }]);
  });

  test("a contested node, too, says what the store has lost", () => {
    const { node, valueOf } = verified({
      records: { [RECORD]: { ...MINE, boot: "bx" } },
      kept: { grants: [GRANT] },
      used: [KEY],
    });
    expect([node.standing, valueOf(KEY), valueOf(ALARM_KEY)]).toMatchObject(["contested", { owner: own }, {
      by: "n1",
    }]);
  });

  test("a store that is at an earlier change than was seen has lost something", () => {
    expect(verified({ kept: { seen: 99 } }).valueOf(ALARM_KEY)).toMatchObject({ saw: expect.stringContaining("99") });
  });

  test("a block at an earlier version than is known has been restored", () => {
    const { valueOf } = verified({
      records: { [KEY]: block({ owner: own }) },
      kept: { grants: [{ ...GRANT, version: 50 }] },
    });
    expect(valueOf(ALARM_KEY)).toMatchObject({ saw: `${KEY} is that of an earlier time` });
  });
});

describe("removing a node", () => {
  const theirs = block({ owner: { node: "n2", generation: 1, claim: "x" } }),
    off: NodeRecord = { generation: 1, machine: "m2", boot: "b", state: "off" };

  test("it is marked first, and what it has is free afterwards", () => {
    const { run, valueOf } = open({ records: { "node/n2": { ...off, state: "joined" }, [KEY]: theirs } });
    expect([run(markOff("n2")), run(freeBlocksOf("n2", "p")), valueOf(KEY)]).toEqual([
      "done",
      { freed: [KEY], remaining: [] },
      block({ lastNode: "n2" }),
    ]);
  });

  test("nothing is freed of one that has put its record back", () => {
    const { run, valueOf } = open({ records: { "node/n2": { ...off, state: "joined" }, [KEY]: theirs } });
    expect([run(freeBlocksOf("n2", "p")), valueOf(KEY)]).toEqual([
      { freed: [], remaining: [] },
      theirs,
    ]);
  });

  test("blocks of its earlier generation are dead, those of its own are not", () => {
    const { run, valueOf } = open({
      records: {
        "node/n2": { ...off, state: "joined", generation: 2 },
        [KEY]: theirs,
        "block/p.1": block({ index: 1, owner: { node: "n2", generation: 2, claim: "y" } }),
      },
    });
    run(freeBlocksOf("n2", "p"));
    expect([valueOf(KEY), valueOf("block/p.1")]).toMatchObject([block({ lastNode: "n2" }), {
      owner: { generation: 2 },
    }]);
  });

  test("who writes its record meanwhile is marked all the same: what it says counts afterwards", () => {
    const { run, valueOf } = open({ records: { "node/n2": { ...off, state: "joined" } }, puts: ["lost", "unknown"] });
    expect([run(markOff("n2")), valueOf("node/n2")]).toEqual(["done", off]);
  });

  test("what the store refuses is not done", () => {
    const { run, valueOf } = open({ records: { "node/n2": { ...off, state: "joined" } }, puts: ["refused"] });
    expect([run(markOff("n2")), valueOf("node/n2")]).toEqual(["refused", { ...off, state: "joined" }]);
  });

  test("blocks that could not be written are told", () => {
    const { run } = open({ records: { "node/n2": off, [KEY]: theirs }, puts: ["lost"] });
    expect(run(freeBlocksOf("n2", "p"))).toEqual({ freed: [], remaining: [KEY] });
  });

  test("a node of which only blocks are known is off without a machine", () => {
    const { run, valueOf } = open({ records: { [KEY]: theirs } });
    expect([run(markUnrecordedOff("n2", 1)), run(freeBlocksOf("n2", "p")).freed]).toEqual(["done", [KEY]]);
    expect(valueOf("node/n2")).toEqual({ generation: 1, machine: "", boot: "", state: "off" });
  });

  test("it lives, when its record is there first", () => {
    const { run } = open({ records: { "node/n2": { ...off, state: "joined" } } });
    expect(run(markUnrecordedOff("n2", 1))).toBe("lives");
  });

  test("an unknown node is nobody", () => {
    const { run } = open({});
    expect([run(markOff("n9")), run(freeBlocksOf("n9", "p"))]).toEqual([
      "unknown node",
      { freed: [], remaining: [] },
    ]);
  });
});
