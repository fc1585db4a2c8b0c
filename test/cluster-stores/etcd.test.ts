/** A cluster in a real etcd: what every store must do, and what etcd's gateway makes peculiar. */
import { afterAll, expect, test } from "bun:test";
import type { EtcdOptions } from "../../src/cluster-stores/etcd.ts";
import type { EtcdConf } from "../../src/cluster/configuration.ts";
import type { ListedRecords } from "../../src/cluster/store.ts";
import { blockKey, type BlockRecord, nodeKey, type NodeRecord } from "../../src/cluster/records.ts";
import { Etcd } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { randomBelow } from "../support/random.ts";
import { RemoteStore } from "../support/remote-store.ts";
import { type RawStore, storeContract } from "./contract.ts";

const machine = await openMachine();
const etcd = await Etcd.start(machine, { members: [{ name: "m1", address: "127.0.0.1" }] });
const stores: RemoteStore[] = [];
afterAll(async () => {
  for (const store of stores) await store[Symbol.asyncDispose]();
  await etcd[Symbol.asyncDispose]();
  await machine[Symbol.asyncDispose]();
});

const conf: EtcdConf = { endpoints: etcd.endpoints, prefix: "/patchbay/" };

function open(prefix = conf.prefix, options: EtcdOptions = {}, env: Record<string, string> = {}): RemoteStore {
  const store = new RemoteStore(machine, { conf: { kind: "etcd", ...conf, prefix }, options }, { env });
  stores.push(store);
  return store;
}

/** As another program writes it. */
async function write(key: string, value: string, prefix = conf.prefix): Promise<void> {
  const { code, stderr } = await etcd.ctl(["put", prefix + key, ...value === "" ? [value] : []], { stdin: value });
  if (code !== 0) throw new Error(stderr);
}

const block = { poolBirth: "b", index: 1, owner: { node: "n1", generation: 1, claim: "c" } };
const foreign = (value: unknown) => (key: string) => write(key, JSON.stringify(value));

const raw: RawStore = {
  foreign: {
    "nothing": (key) => write(key, ""),
    "no JSON": (key) => write(key, "{'poolBirth': 1}"),
    "no UTF-8": (key) =>
      machine.sh(`printf '"\\377\\376"' | ETCDCTL_API=3 etcdctl put ${conf.prefix}${key}`).then(() => {}),
    "no object": foreign([]),
    "a number in the place of a text": foreign({ ...block, poolBirth: 1 }),
    "a text in the place of a number": foreign({ ...block, index: "1" }),
    "another block's index": foreign({ ...block, index: 2 }),
    "an owner without generation": foreign({ ...block, owner: { node: "n1", claim: "c" } }),
    "a deep one": foreign({ ...block, more: [[[[[[[[[[]]]]]]]]]] }),
    "a large one": foreign({ ...block, more: "x".repeat(64 * 1024) }),
    "a megabyte": foreign({ ...block, more: "x".repeat(1024 * 1024) }),
    "a long text": foreign({ ...block, poolBirth: "x".repeat(5000) }),
  },
  delete: async (key) => void await etcd.done("del", conf.prefix + key),
  async addField(key, field, value) {
    const record = JSON.parse(await etcd.done("get", "--print-value-only", conf.prefix + key));
    // Other programs write spaces, too.
    await write(key, JSON.stringify({ [field]: value, ...record }, null, 2));
  },
};

storeContract("etcd", () => Promise.resolve({ store: open(), raw }));

test("what is not below the prefix is not there", async () => {
  const store = open(), other = open("/patchbay2/");
  const value: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };
  expect(await other.put(nodeKey("elsewhere"), undefined, value)).toMatchObject({ won: {} });
  expect(await store.read(nodeKey("elsewhere"))).toBeUndefined();
  expect((await store.list("node")).records.some(({ key }) => key === nodeKey("elsewhere"))).toBe(false);
});

test("keys that no record has are problems of their kind's list, and of no other's", async () => {
  const store = open("/strange/");
  for (const key of ["node/N1", "node/", "block/lan", "block/lan.x", "nodes/n1", "alarm2", "v"]) {
    await write(key, "{}", "/strange/");
  }
  const problemsOf = async (kind: "node" | "block" | "pool" | "alarm") => (await store.list(kind)).problems;
  const noName = (key: string) => `${key} is no record: no record has such a name`;
  expect(await problemsOf("node")).toEqual(["node/", "node/N1"].map(noName));
  expect(await problemsOf("block")).toEqual(["block/lan", "block/lan.x"].map(noName));
  expect(await problemsOf("pool")).toEqual([]);
  expect(await problemsOf("alarm")).toEqual([]);
});

test("a list of more than one answer holds is of one moment", async () => {
  const store = open("/many/", { page: 7 }), indices = Array.from({ length: 50 }, (_, index) => index);
  const made = await Promise.all(
    indices.map((index) => store.put(blockKey("lan", index), undefined, { ...block, index })),
  );
  expect(made).toEqual(made.map(() => ({ won: expect.anything() })));
  const { records, problems, revision } = await store.list("block", "lan");
  expect(problems).toEqual([]);
  expect(records.map(({ value }) => (value as BlockRecord).index).sort((a, b) => a - b)).toEqual(indices);
  expect(revision).toBe(Math.max(...records.map(({ version }) => version)));
});

test("lists by what has changed are what lists of everything are", async () => {
  const prefix = "/changing/", writer = open(prefix), byChange = open(prefix, { wholeMs: 1e9, page: 3 });
  const whole = open(prefix, { wholeMs: 0 });
  const inOrder = ({ records, problems, revision }: ListedRecords) => ({
    records: records.sort((one, other) => one.key < other.key ? -1 : 1),
    problems: problems.sort(),
    revision,
  });
  for (let round = 0; round < 150; round++) {
    for (let change = randomBelow(4); change > 0; change--) {
      const index = randomBelow(12), key = blockKey(randomBelow(4) === 0 ? "lan.b" : "lan", index);
      if (randomBelow(6) === 0) await write(key, "{}", prefix);
      const was = await writer.read(key).catch(() => undefined),
        isDeleted = was !== undefined && randomBelow(2) === 0;
      await writer.put(key, was, isDeleted ? undefined : { ...block, index, lastNode: `n${round}` });
    }
    expect([round, inOrder(await byChange.list("block", "lan"))]).toEqual([
      round,
      inOrder(await whole.list("block", "lan")),
    ]);
  }
});

test("what nobody could read again is not written", async () => {
  const store = open(), value: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };
  const long = {
    layout: "flat",
    ranges: [{ cidr: "10.1.0.0/16", blockSize: 1, exclude: Array(7000).fill("10.1.0.1") }],
  };
  expect(await store.put("pool/long", undefined, long)).toEqual({
    refused: "pool/long is not written: pool/long is no record: it is larger than 64 KB",
  });
  expect(await store.put("node/N1", undefined, value)).toEqual({
    refused: "node/N1 is not written: node/N1 is no record: no record has such a name",
  });
  expect(await store.put("node/n1", undefined, { ...value, generation: 0 })).toEqual({
    refused: 'node/n1 is not written: node/n1 is no record: "generation" is no whole number from 1 on',
  });
});

test("an index as large as 2^53 and texts of other alphabets come back", async () => {
  const store = open(),
    value: NodeRecord = {
      generation: Number.MAX_SAFE_INTEGER,
      machine: "\ud800 half a pair",
      boot: "ключ",
      state: "off",
      isContested: true,
    };
  expect(await store.put(nodeKey("odd"), undefined, value)).toMatchObject({ won: { value } });
  expect((await store.read(nodeKey("odd")))?.value).toEqual(value);
});

test.each(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])("%s changes nothing", async (name) => {
  const store = open(conf.prefix, {}, { [name]: "http://127.0.0.1:9" });
  expect(await store.read(nodeKey("nobody"))).toBeUndefined();
});
