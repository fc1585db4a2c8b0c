/** An etcd that stands still, is killed, comes back from a snapshot, forgets, or is full: each has its sentence. */
import { afterAll, expect, test } from "bun:test";
import type { EtcdOptions } from "../../src/cluster-stores/etcd.ts";
import { ForeignRecord } from "../../src/cluster/effects.ts";
import { blockKey, nodeKey, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import { Etcd, type EtcdSetup } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { complaint, RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine();
const ending: AsyncDisposable[] = [machine];
afterAll(async () => {
  for (const each of ending.reverse()) await each[Symbol.asyncDispose]();
});

let port = 2379;

/** One member, with a port of its own. */
async function start(options: EtcdSetup["options"] = []): Promise<Etcd> {
  const etcd = await Etcd.start(machine, { members: [{ name: `m${port}`, address: "127.0.0.1", port }], options });
  ending.push(etcd);
  port += 10;
  return etcd;
}

function open({ endpoints }: { endpoints: string[] }, options: EtcdOptions = {}): RemoteStore {
  const store = new RemoteStore(machine, { conf: { kind: "etcd", endpoints, prefix: "/patchbay/" }, options });
  ending.push(store);
  return store;
}

const node = (machine: string): NodeRecord => ({ generation: 1, machine, boot: "b", state: "joined" });
const nameOf = (etcd: Etcd) => `m${etcd.endpoints[0]!.split(":").at(-1)}`;

async function made(store: RemoteStore, key: string, value: NodeRecord): Promise<Stored<NodeRecord>> {
  const { won } = await store.put(key, undefined, value) as { won: Stored<NodeRecord> };
  return won;
}

test("stopped: whoever gets no answer within 2 s reads what has happened, once it goes on", async () => {
  const etcd = await start(), store = open(etcd), [endpoint] = etcd.endpoints;
  await made(store, nodeKey("before"), node("m"));
  const keys = Array.from({ length: 32 }, (_, number) => nodeKey(`n${number}`));
  // Some are on their way when it stops.
  const puts = keys.map((key) => store.put(key, undefined, node(key)));
  etcd.signal(nameOf(etcd), "SIGSTOP");
  const late = store.put(nodeKey("late"), undefined, node("late")), silent = `${endpoint}: no answer within 2 s`;
  expect(await complaint(store.read(nodeKey("before")))).toBe(silent);
  expect(await complaint(store.list("node"))).toBe(silent);
  expect(await late).toEqual({ unknown: silent });
  const outcomes = await Promise.all(puts);
  etcd.signal(nameOf(etcd), "SIGCONT");
  await etcd.untilReady();
  for (const [index, outcome] of outcomes.entries()) {
    const found = await store.read(keys[index]!);
    if (typeof outcome === "object" && "won" in outcome) expect(found).toEqual(outcome.won!);
    else {
      expect(outcome).toEqual({ unknown: silent });
      // What it did not do, another put does; what it did, is seen.
      const again = await store.put(keys[index]!, undefined, node(keys[index]!));
      if (found === undefined) expect(again).toMatchObject({ won: { value: node(keys[index]!) } });
      else expect([again, found.value]).toEqual(["lost", node(keys[index]!)]);
    }
  }
});

test("killed and started again: a sentence meanwhile, and everything is there afterwards", async () => {
  const etcd = await start(), store = open(etcd), [endpoint] = etcd.endpoints, key = nodeKey("n1");
  const was = await made(store, key, node("m"));
  let told = 0;
  const watched = store.watch(key, () => told++, new AbortController().signal);
  await untilTrue(() => told, (count) => count > 0);
  await etcd.kill(nameOf(etcd));
  expect(await watched).toMatch(new RegExp(`^${endpoint}: (the connection ended before the answer|etcd has ended)`));
  const gone = `${endpoint}: nothing listens there (connection refused): start etcd, or correct the address`;
  // A connection that was open until then ends first.
  await untilTrue(() => complaint(store.read(key)), (said) => said === gone);
  expect(await store.put(key, was, node("other"))).toEqual({ unknown: gone });
  expect(await store.watch(key, () => told++, new AbortController().signal)).toBe(gone);
  etcd.begin(nameOf(etcd));
  await etcd.untilReady();
  expect(await store.read(key)).toEqual(was);
  expect(await store.put(key, was, node("other"))).toMatchObject({ won: { value: node("other") } });
});

test("restored: the revision is lower than before, and what was read before is compared by more than a number", async () => {
  const etcd = await start(), store = open(etcd), key = nodeKey("n1"), other = nodeKey("n2");
  const first = await made(store, key, node("first"));
  await etcd.done("snapshot", "save", "/run/snapshot");
  const second = await store.put(key, first, node("second")) as { won: Stored<NodeRecord> };
  const third = await store.put(key, second.won, node("third")) as { won: Stored<NodeRecord> };
  const born = await made(store, other, node("first"));
  const { revision } = await store.list("node");

  await etcd.kill(nameOf(etcd));
  await etcd.restore(nameOf(etcd), "/run/snapshot");
  etcd.begin(nameOf(etcd));
  await etcd.untilReady();
  const listed = await store.list("node");
  expect(listed.revision).toBeLessThan(revision);
  expect(listed.records).toEqual([first]);
  expect(await store.read(key)).toEqual(first);

  // Another host's changes get the revisions that these records had.
  const again = await store.put(key, first, node("elsewhere")) as { won: Stored<NodeRecord> };
  expect(again.won.version).toBe(second.won.version);
  expect(await store.put(key, second.won, node("mine"))).toBe("lost");
  const fourth = await made(store, other, node("elsewhere"));
  expect(fourth.version).toBe(third.won.version);
  await made(store, nodeKey("n3"), node("m"));
  expect(await store.put(other, born, node("mine"))).toBe("lost");
  expect((await store.read(key))?.value).toEqual(node("elsewhere"));
  expect((await store.read(other))?.value).toEqual(node("elsewhere"));
});

test("restored unseen, and newer than before: a list is right again when everything was asked for once more", async () => {
  const etcd = await start(), key = nodeKey("n1"), store = open(etcd, { wholeMs: 500 }), other = open(etcd);
  const first = await made(other, key, node("first"));
  await etcd.done("snapshot", "save", "/run/snapshot2");
  await other.put(key, first, node("second"));
  const lasting = open(etcd, { wholeMs: 1e9 });
  for (const each of [store, lasting]) {
    expect((await each.list("node")).records.map(({ value }) => value)).toEqual([node("second")]);
  }
  await etcd.kill(nameOf(etcd));
  await etcd.restore(nameOf(etcd), "/run/snapshot2");
  etcd.begin(nameOf(etcd));
  await etcd.untilReady();
  // While it is older than before, that is seen.
  expect((await lasting.list("node")).records).toEqual([first]);
  await other.put(key, first, node("elsewhere"));
  for (const name of ["n2", "n3", "n4"]) await made(other, nodeKey(name), node("m"));
  await untilTrue(
    async () => (await store.list("node")).records.find((record) => record.key === key)?.value,
    (value) => (value as NodeRecord).machine === "elsewhere",
  );
});

test("compacted during a watch: it goes on, and tells", async () => {
  const etcd = await start(), store = open(etcd), key = nodeKey("n1");
  let was = await made(store, key, node("0")), told = 0;
  const stop = new AbortController(), watched = store.watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (count) => count > 0);
  for (let round = 1; round <= 20; round++) {
    const before = told;
    ({ won: was } = await store.put(key, was, node(`${round}`)) as { won: Stored<NodeRecord> });
    await etcd.done("compact", `${was.version}`);
    await untilTrue(() => told, (count) => count > before);
    expect(await store.read(key)).toEqual(was);
  }
  stop.abort();
  expect(await watched).toBe("it was no longer wanted");
});

test("a watch is begun anew again and again, and tells each time", async () => {
  const etcd = await start(), store = open(etcd, { renewMs: 50 }), key = nodeKey("n1");
  let told = 0;
  const stop = new AbortController(), watched = store.watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (count) => count >= 10);
  const before = told;
  await made(store, key, node("m"));
  await untilTrue(() => told, (count) => count > before);
  stop.abort();
  expect(await watched).toBe("it was no longer wanted");
  // Nothing of the earlier ones stays open at the server.
  await untilTrue(
    () => machine.sh(`ss -Htn state established dst ${etcd.endpoints[0]!.replace("http://", "")} | wc -l`),
    (count) => Number(count) <= 2,
  );
});

test("full: nothing is written, and the sentence says what to type", async () => {
  const etcd = await start(["--quota-backend-bytes", `${1024 * 1024}`]),
    store = open(etcd),
    [endpoint] = etcd.endpoints;
  for (let key = 0; (await etcd.ctl(["put", `other/${key}`], { stdin: "x".repeat(400_000) })).code === 0;) key++;
  expect(await store.put(nodeKey("n1"), undefined, node("m"))).toEqual({
    refused: `node/n1 is not written: ${endpoint}: etcd's database is full and takes no writes: ` +
      "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm",
  });
  expect(await store.read(nodeKey("n1"))).toBeUndefined();
});

test("another program at the port: it is no etcd", async () => {
  const server = machine.start([
    "python3",
    "-c",
    "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8080, bind='127.0.0.1')",
  ]);
  try {
    await untilTrue(() => machine.run(["sh", "-c", "ss -Htln | grep -q :8080"]), ({ code }) => code === 0);
    const store = open({ endpoints: ["http://127.0.0.1:8080"] });
    expect(await complaint(store.read(nodeKey("n1")))).toMatch(/^http:\/\/127.0.0.1:8080: etcd cannot answer now: /);
  } finally {
    server.kill("SIGKILL");
    await server.exited;
  }
});

test("an etcd without its gateway: it says what is needed, and the next endpoint is taken", async () => {
  const bare = await start(["--enable-grpc-gateway=false"]), whole = await start(), [endpoint] = bare.endpoints;
  expect(await complaint(open(bare).read(nodeKey("n1")))).toBe(
    `${endpoint}: there is no /v3/ at what answers: etcd 3.4 or newer is needed, with its gateway (--enable-grpc-gateway)`,
  );
  const store = open({ endpoints: [...bare.endpoints, ...whole.endpoints] }, { first: 0 });
  expect(await store.put(nodeKey("n1"), undefined, node("m"))).toMatchObject({ won: { value: node("m") } });
});

test("a record that another program writes meanwhile is named by its key", async () => {
  const etcd = await start(), store = open(etcd), key = blockKey("lan", 3);
  await etcd.done("put", `/patchbay/${key}`, "{}");
  const error = await store.read(key).then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(ForeignRecord);
  expect((error as Error).message).toBe('block/lan.3 is no record: "index" is no whole number from 0 on');
});
