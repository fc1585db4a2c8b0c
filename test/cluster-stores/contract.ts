/**
 * What every store that can be written to must do, whichever it is: src/cluster/store.ts. Names are new in each test, so
 * that the store need not be empty. Lists may be old, so they are looked at until they are right.
 *
 * Longer than 300 lines: a list of cases.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ClusterRecord, ForeignRecord } from "../../src/cluster/effects.ts";
import {
  ALARM_KEY,
  blockKey,
  type BlockRecord,
  nodeKey,
  type NodeRecord,
  poolKey,
  type PoolRecord,
  type Stored,
} from "../../src/cluster/records.ts";
import type { ClusterStore, ListedRecords, RecordKind, StoreOutcome } from "../../src/cluster/store.ts";
import { random, shuffled } from "../support/random.ts";
import { untilTrue } from "../support/until-true.ts";

export interface OpenedStore {
  store: ClusterStore;
  raw: RawStore;
}

/** The store as other programs and persons see it. */
export interface RawStore {
  /** Ways to have something at a block's key that is no record, by name. The key is not used yet. */
  foreign: Readonly<Record<string, (key: string) => Promise<void>>>;
  /** Whatever the record is: as a person deletes it. */
  delete(key: string): Promise<void>;
  /** As a newer version may. Undefined where the store keeps no field that it does not know. */
  addField?(key: string, field: string, value: unknown): Promise<void>;
}

type NodeStored = Stored<NodeRecord>;
type BlockStored = Stored<BlockRecord>;

const CLIENTS = 64;

/** Each call of `open` is one more client of the same records. */
export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(name, () => {
    const opened: OpenedStore[] = [];
    beforeAll(async () => void opened.push(await open(), await open()));
    afterAll(() => opened.forEach(({ store }) => store.close()));
    const stage: Stage = {
      get store() {
        return opened[0]!.store;
      },
      get other() {
        return opened[1]!.store;
      },
      get raw() {
        return opened[0]!.raw;
      },
    };
    test("says what it is", () => {
      expect(stage.store.name).not.toBe("");
      expect(stage.store.isWritable).toBe(true);
    });
    describe("one record", () => oneRecord(stage));
    describe("what is no record", () => foreignRecords(stage));
    describe("lists", () => lists(stage));
    describe("watches", () => watches(stage));
    describe("many at once", () => manyAtOnce(stage));
  });
}

interface Stage {
  readonly store: ClusterStore;
  /** Another client of the same records. */
  readonly other: ClusterStore;
  readonly raw: RawStore;
}

function oneRecord(stage: Stage): void {
  test("what was never made is absent", async () => {
    expect(await stage.store.read(nodeKey(newName()))).toBeUndefined();
  });

  test.each<[RecordKind, () => [string, ClusterRecord]]>([
    ["pool", () => [poolKey(newName()), pool]],
    ["node", () => [nodeKey(newName()), off]],
    ["block", () => [blockKey(newName(), 0), { poolBirth: "b", index: 0, lastNode: "n1" }]],
    ["alarm", () => [ALARM_KEY, { by: "n1", saw: "block/lan.3 is no longer n1's" }]],
  ])("a %s is made, read by all, and deleted", async (_, make) => {
    const [key, value] = make();
    const made = recordOf(await stage.store.put(key, undefined, value));
    expect(made).toMatchObject({ key, value, isGoing: false });
    expect(await stage.other.read(key)).toEqual(made);
    expect(await stage.other.put(key, made, undefined)).toEqual({ won: undefined });
    expect(await stage.store.read(key)).toBeUndefined();
  });

  test("texts come back as they were", async () => {
    const key = nodeKey(newName()), value = node(`"\\\n\t\u0001ä€𝄞\u2028</script>${"x".repeat(4000)}`);
    recordOf(await stage.store.put(key, undefined, value));
    expect((await stage.other.read(key))?.value).toEqual(value);
  });

  test("what is there is not made again", async () => {
    const key = nodeKey(newName());
    const made = recordOf(await stage.store.put(key, undefined, node("first")));
    expect(await stage.other.put(key, undefined, node("second"))).toBe("lost");
    expect(await stage.store.read(key)).toEqual(made);
  });

  test("a replacement keeps the birth, and its version is higher", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, node("first")));
    const replaced = recordOf(await stage.other.put(key, made, node("second")));
    expect(replaced).toMatchObject({ key, birth: made.birth, value: node("second") });
    expect(replaced.version).toBeGreaterThan(made.version);
    expect(await stage.store.read(key)).toEqual(replaced);
  });

  test("a replacement of what it is no more is lost", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, node("first")));
    const replaced = recordOf(await stage.store.put(key, made, node("second")));
    for (const store of [stage.store, stage.other]) {
      expect(await store.put(key, made, node("third"))).toBe("lost");
      expect(await store.put(key, made, undefined)).toBe("lost");
    }
    expect(await stage.store.read(key)).toEqual(replaced);
  });

  test("back to an earlier value is a change, too", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, node("first")));
    const second = recordOf(await stage.store.put(key, made, node("second")));
    const back = recordOf(await stage.store.put(key, second, node("first")));
    expect(back.version).toBeGreaterThan(second.version);
    expect(await stage.store.put(key, made, node("third"))).toBe("lost");
  });

  test("the same value once more is won", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, node("first")));
    const again = recordOf(await stage.store.put(key, made, node("first")));
    expect(again.version).toBeGreaterThanOrEqual(made.version);
    expect(await stage.store.read(key)).toEqual(again);
  });

  test("a field that was there and is not any more is gone", async () => {
    const name = newName(), key = blockKey(name, 3);
    const made = recordOf(await stage.store.put(key, undefined, block(3, "c")));
    const free: BlockRecord = { poolBirth: "b", index: 3, lastNode: "n1" };
    recordOf(await stage.store.put(key, made, free));
    expect((await stage.other.read(key))?.value).toEqual(free);
  });

  test("deleted and made again, it is another", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, off));
    expect(await stage.store.put(key, made, undefined)).toEqual({ won: undefined });
    const again = recordOf(await stage.other.put(key, undefined, node("first")));
    expect(again.birth).not.toBe(made.birth);
    expect(await stage.store.put(key, made, node("second"))).toBe("lost");
    expect(await stage.store.put(key, made, undefined)).toBe("lost");
    expect(await stage.store.read(key)).toEqual(again);
  });

  test("what a person has deleted is neither replaced nor deleted", async () => {
    const key = nodeKey(newName()), made = recordOf(await stage.store.put(key, undefined, node("first")));
    await stage.raw.delete(key);
    expect(await stage.store.put(key, made, node("second"))).toBe("lost");
    expect(await stage.store.put(key, made, undefined)).toBe("lost");
    expect(await stage.store.read(key)).toBeUndefined();
  });
}

function foreignRecords(stage: Stage): void {
  test("is refused by read with its key, is a problem of lists, and is not written over", async () => {
    const ways = Object.entries(stage.raw.foreign);
    expect(ways.length).toBeGreaterThan(0);
    for (const [way, write] of ways) {
      const name = newName(), key = blockKey(name, 1), good = blockKey(name, 2);
      await write(key);
      recordOf(await stage.store.put(good, undefined, block(2, "c")));
      const error = await stage.store.read(key).then(() => undefined, (reason: unknown) => reason);
      expect([way, error]).toEqual([way, expect.any(ForeignRecord)]);
      expect((error as ForeignRecord).key).toBe(key);
      expect((error as ForeignRecord).message).toContain(key);

      const listed = await listUntil(stage.store, "block", name, ({ records }) => records.length > 0);
      expect([way, listed.records.map((record) => record.key)]).toEqual([way, [good]]);
      expect([way, listed.problems]).toEqual([way, [expect.stringContaining(key)]]);
      expect([way, await stage.store.put(key, undefined, block(1, "c"))]).toEqual([way, "lost"]);
      await stage.raw.delete(key);
    }
  });

  test("in the place of a record, it is not written over", async () => {
    for (const [way, write] of Object.entries(stage.raw.foreign)) {
      const key = blockKey(newName(), 1), made = recordOf(await stage.store.put(key, undefined, block(1, "c")));
      await stage.raw.delete(key);
      await write(key);
      expect([way, await stage.store.put(key, made, block(1, "d"))]).toEqual([way, "lost"]);
      expect([way, await stage.store.put(key, made, undefined)]).toEqual([way, "lost"]);
      await stage.raw.delete(key);
    }
  });

  test("a field of a newer version is left out, and does not keep the record from being written", async () => {
    if (stage.raw.addField === undefined) return;
    const key = nodeKey(newName());
    recordOf(await stage.store.put(key, undefined, node("first")));
    await stage.raw.addField(key, "tunnel", { address: "10.0.0.1" });
    const found = (await stage.store.read(key)) as NodeStored;
    expect(found.value).toEqual(node("first"));
    const { records } = await listUntil(stage.store, "node", undefined, holds(found));
    expect(records.find((record) => record.key === key)?.value).toEqual(node("first"));
    expect(recordOf(await stage.store.put(key, found, node("second"))).value).toEqual(node("second"));
  });
}

function lists(stage: Stage): void {
  test("have the records of one kind", async () => {
    const name = newName(),
      keys: Record<string, [string, ClusterRecord]> = {
        pool: [poolKey(name), pool],
        node: [nodeKey(name), node("m")],
        block: [blockKey(name, 4), block(4, "c")],
      };
    const made = new Map<string, Stored<ClusterRecord>>();
    for (const [kind, [key, value]] of Object.entries(keys)) {
      made.set(kind, recordOf(await stage.store.put(key, undefined, value)));
    }
    for (const [kind, record] of made) {
      const { records } = await listUntil(stage.other, kind as RecordKind, undefined, holds(record));
      expect(records.filter(({ key }) => key.endsWith(name) || key.includes(`${name}.`))).toEqual([record]);
      expect(records.every(({ key }) => key.startsWith(`${kind}/`))).toBe(true);
    }
  });

  test("have the blocks of one pool, and none of a pool with a longer name", async () => {
    const name = newName(), others = [`${name}.b`, `${name}.1`, `${name}-b`, `${name}1`, `x${name}`];
    for (const other of others) recordOf(await stage.store.put(blockKey(other, 1), undefined, block(1, "c")));
    const own: Stored<ClusterRecord>[] = [];
    for (const index of [0, 1, 10, 2]) {
      own.push(recordOf(await stage.store.put(blockKey(name, index), undefined, block(index, "c"))));
    }
    const inOrder = (records: readonly Stored<ClusterRecord>[]) => [...records].sort((a, b) => a.version - b.version);
    const { records, problems } = await listUntil(stage.other, "block", name, holds(own.at(-1)!));
    expect(inOrder(records)).toEqual(inOrder(own));
    expect(problems).toEqual([]);
    for (const other of others) {
      const found = await listUntil(stage.other, "block", other, ({ records }) => records.length > 0);
      expect(found.records.map(({ key }) => key)).toEqual([blockKey(other, 1)]);
    }
  });

  test("have the alarm while there is one", async () => {
    const made = recordOf(await stage.store.put(ALARM_KEY, undefined, { by: "n1", saw: "less" }));
    const { records } = await listUntil(stage.store, "alarm", undefined, holds(made));
    expect(records).toEqual([made]);
    expect(await stage.store.put(ALARM_KEY, made, undefined)).toEqual({ won: undefined });
    await listUntil(stage.store, "alarm", undefined, (listed) => listed.records.length === 0);
  });

  test("of a pool without blocks are empty", async () => {
    expect(await stage.store.list("block", newName())).toMatchObject({ records: [], problems: [] });
  });

  test("say a higher revision after each change, whichever record it was", async () => {
    const name = newName(), key = nodeKey(name);
    let { revision } = await stage.store.list("block", name), was: Stored<ClusterRecord> | undefined;
    expect(revision).toBeGreaterThan(0);
    const rises = async () => {
      const before = revision;
      ({ revision } = await listUntil(stage.store, "block", name, (listed) => listed.revision > before));
    };
    was = recordOf(await stage.store.put(blockKey(name, 0), undefined, block(0, "c")));
    await rises();
    recordOf(await stage.store.put(blockKey(name, 0), was, block(0, "d")));
    await rises();
    was = recordOf(await stage.store.put(key, undefined, off));
    await stage.store.put(key, was, undefined);
    recordOf(await stage.store.put(blockKey(name, 1), undefined, block(1, "c")));
    await rises();
  });
}

function watches(stage: Stage): void {
  test("tell that they have begun, and each change until the signal ends them", async () => {
    const key = nodeKey(newName()), watch = watching(stage.store, key);
    const told = () => watch.told;
    await untilTrue(told, (count) => count > 0);
    let was: Stored<ClusterRecord> | undefined;
    for (const value of [node("first"), off, undefined, node("third")]) {
      const before = watch.told;
      const { won } = await stage.other.put(key, was, value) as { won: Stored<ClusterRecord> | undefined };
      was = won;
      await untilTrue(told, (count) => count > before);
      expect((await stage.store.read(key))?.value).toEqual(value as ClusterRecord);
    }
    expect((await watch.end()).at(-1)).not.toBe("");
    const before = watch.told;
    recordOf(await stage.other.put(key, was, node("fourth")));
    expect(watch.told).toBe(before);
  });

  test("tell what a person has deleted", async () => {
    const key = nodeKey(newName());
    recordOf(await stage.store.put(key, undefined, node("first")));
    const watch = watching(stage.store, key);
    await untilTrue(() => watch.told, (count) => count > 0);
    const before = watch.told;
    await stage.raw.delete(key);
    await untilTrue(() => watch.told, (count) => count > before);
    await watch.end();
  });

  test("do not begin after their signal", async () => {
    let told = 0;
    const ended = await stage.store.watch(nodeKey(newName()), () => told++, AbortSignal.abort());
    expect([typeof ended, told]).toEqual(["string", 0]);
  });
}

function manyAtOnce(stage: Stage): void {
  const client = (number: number) => number % 2 === 0 ? stage.store : stage.other;
  const numbers = Array.from({ length: CLIENTS }, (_, number) => number);

  test(`${CLIENTS} write one record: one wins`, async () => {
    const key = nodeKey(newName());
    let was: Stored<ClusterRecord> | undefined;
    for (const round of ["made", "replaced", "replaced again"]) {
      const outcomes = await Promise.all(
        numbers.map((number) => client(number).put(key, was, node(`${round} ${number}`))),
      );
      const won = outcomes.flatMap((outcome) => typeof outcome === "object" && "won" in outcome ? [outcome.won] : []);
      const isLost = (outcome: StoreOutcome) => outcome === "lost";
      const found = await stage.store.read(key);
      // An answer that did not come may be the winner's.
      if (outcomes.every((outcome) => isLost(outcome) || "won" in (outcome as object))) expect(won).toEqual([found]);
      else expect(won.length).toBeLessThanOrEqual(1);
      expect((found?.value as NodeRecord).machine).toStartWith(round);
      was = found;
    }
  });

  test(`${CLIENTS} claim 4 blocks: each has one owner, who knows it`, async () => {
    const name = newName(), indices = [0, 1, 2, 3];
    const claimed = await Promise.all(
      numbers.map((number) => claim(client(number), name, indices, `claim ${number}`)),
    );
    const owners = new Map(claimed.flatMap((found) => found === undefined ? [] : [[found.key, found.value]]));
    expect(claimed.filter((found) => found !== undefined).length).toBe(indices.length);
    for (const index of indices) {
      const found = await stage.store.read(blockKey(name, index)) as BlockStored;
      expect(found.value).toEqual(owners.get(found.key)!);
    }
  });
}

/** As an agent does: a random free one, and the next when another was faster. Undefined when none is free. */
async function claim(
  store: ClusterStore,
  pool: string,
  indices: readonly number[],
  own: string,
): Promise<BlockStored | undefined> {
  for (const index of shuffled(indices)) {
    const key = blockKey(pool, index), outcome = await store.put(key, undefined, block(index, own));
    if (outcome === "lost") continue;
    if ("won" in outcome) return outcome.won as BlockStored;
    const found = await store.read(key) as BlockStored | undefined;
    if (found?.value.owner?.claim === own) return found;
  }
  return undefined;
}

/** A watch that is begun anew whenever it ends, until `end`, which returns why each ended. */
function watching(store: ClusterStore, key: string) {
  const stop = new AbortController(), ends: string[] = [], watch = { told: 0, end };
  const running = (async () => {
    while (!stop.signal.aborted) {
      ends.push(await store.watch(key, () => watch.told++, stop.signal));
      await Bun.sleep(10);
    }
  })();
  async function end(): Promise<string[]> {
    stop.abort();
    await running;
    return ends;
  }
  return watch;
}

function listUntil(
  store: ClusterStore,
  kind: RecordKind,
  pool: string | undefined,
  isRight: (listed: ListedRecords) => boolean,
): Promise<ListedRecords> {
  return untilTrue(() => store.list(kind, pool), isRight);
}

function holds(wanted: Stored<ClusterRecord>): (listed: ListedRecords) => boolean {
  return ({ records }) => records.some(({ key, version }) => key === wanted.key && version >= wanted.version);
}

/** What is in the store after a put that must be won. */
function recordOf(outcome: StoreOutcome): Stored<ClusterRecord> {
  if (typeof outcome === "object" && "won" in outcome && outcome.won !== undefined) return outcome.won;
  throw new Error(`not won: ${JSON.stringify(outcome)}`);
}

function newName(): string {
  return `t${Math.floor(random() * 2 ** 48).toString(36)}`;
}

const pool: PoolRecord = { layout: "flat", ranges: [{ cidr: "10.1.0.0/16", blockSize: 16 }] };

/** It holds nothing, and so it may be deleted. */
const off: NodeRecord = { ...node("m"), state: "off" };

function node(machine: string): NodeRecord {
  return { generation: 1, machine, boot: "b1", state: "joined" };
}

function block(index: number, claim: string): BlockRecord {
  return { poolBirth: "b", index, owner: { node: "n1", generation: 1, claim } };
}
