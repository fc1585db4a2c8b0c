/** What a database server may send, and what becomes of it: everything is bounded. */
import { afterAll, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endCall, reasonLeft, takeCall } from "../../../src/process/calls.ts";
import { closeFile } from "../../../src/ffi/files.ts";
import { listenAt, listenOn } from "../../../src/ffi/socket/unix.ts";
import { NoDatabase, OvsdbConnection, Refused } from "../../../src/interop/ovsdb/connection.ts";
import { Documents } from "../../../src/interop/ovsdb/documents.ts";
import { outcomeOf } from "../../support/outcome.ts";
import type { Script } from "./scripted-server.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-ovsdb-"));
afterAll(() => rmSync(directory, { recursive: true }));

const select = { op: "select", table: "Bridge", where: [] };
const result = (text: string) => `{"id":ID,"result":${text},"error":null}`;
const rows = result('[{"rows":[{"name":"ovs0"}]}]');
const update = (text: string) => `{"id":null,"method":"update","params":["",${text}]}`;

/** JSON.stringify throws a RangeError for it. */
const deep = "[".repeat(100_000) + "]".repeat(100_000);

let servers = 0;

/** Returns what `work` returns or throws, and what the server has heard. */
async function withServer(says: readonly string[], work: (database: OvsdbConnection) => unknown, hangsUp = true) {
  const path = join(directory, String(++servers));
  const server = new Worker(new URL("./scripted-server.ts", import.meta.url));
  const next = () => new Promise<unknown>((resolve) => server.onmessage = ({ data }) => resolve(data));
  const ready = next(), script: Script = { path, says, hangsUp };
  server.postMessage(script);
  await ready;
  const heard = next(), database = OvsdbConnection.open(path);
  const outcome = outcomeOf(() => work(database));
  database.close();
  const all = await heard as string[];
  server.terminate();
  return { outcome, heard: all.map((text) => JSON.parse(text)) };
}

const ask = (database: OvsdbConnection) => database.transact(select)[0]!.rows;

/** The clock stands meanwhile. */
function atTime<T>(time: number, work: () => T): T {
  const clock = spyOn(performance, "now").mockImplementation(() => time);
  try {
    return work();
  } finally {
    clock.mockRestore();
  }
}

test("one work after another, until the server ends", async () => {
  const { outcome } = await withServer([rows, rows], (database) => {
    const first = [ask(database), database.renew(false), ask(database), database.renew(false)];
    expect(() => ask(database)).toThrow("has ended");
    return [...first, database.renew(false)];
  });
  const row = [{ name: "ovs0" }];
  expect(outcome).toEqual([row, true, row, true, false]);
});

test("a transaction, and the answer with its number", async () => {
  const { outcome, heard } = await withServer(['{"id":9,"result":[{"rows":[]}],"error":null}' + rows], ask);
  expect(outcome).toEqual([{ name: "ovs0" }]);
  expect(heard).toEqual([{ method: "transact", params: ["Open_vSwitch", select], id: 1 }]);
});

test("the server asks whether we are here, and hears that we are", async () => {
  const { outcome, heard } = await withServer(['{"id":"echo","method":"echo","params":["x"]}', rows], ask);
  expect(outcome).toEqual([{ name: "ovs0" }]);
  expect(heard[1]).toEqual({ id: "echo", result: ["x"], error: null });
});

test("updates come in their order, those before an answer too; none in time is none", async () => {
  const first = update('{"Interface":{"a":{"new":{"ofport":1}}}}'), second = update("{}");
  const { outcome, heard } = await withServer([result("{}"), first + rows + second], (database) => {
    database.watch({ Interface: ["ofport", "error"] });
    ask(database);
    const until = performance.now() + 60_000;
    return [database.nextUpdate(until), database.nextUpdate(until), database.nextUpdate(performance.now())];
  });
  expect(outcome).toEqual([{ Interface: { a: { new: { ofport: 1 } } } }, {}, undefined]);
  const select = { initial: false, insert: false, delete: false, modify: true };
  expect(heard[0].params).toEqual(["Open_vSwitch", "", { Interface: [{ columns: ["ofport", "error"], select }] }]);
});

test.each<[string, string, string]>([
  [
    "an operation",
    result('[{"error":"constraint violation","details":"two rows"}]'),
    "constraint violation: two rows",
  ],
  ["a later one", result('[null,{"error":"timed out"}]'), "timed out"],
  ["the whole", '{"id":ID,"result":null,"error":{"error":"unknown database","syntax":"x"}}', "unknown database"],
  ["a text", '{"id":ID,"result":null,"error":"no"}', "no"],
  ["no list", result("{}"), "the answer is no transaction's"],
  ["too short a list", result("[]"), "the answer is no transaction's"],
  ["no rows", result("[{}]"), "the answer is no transaction's"],
  ["nothing", result("[null]"), "the answer is no transaction's"],
  ["rows of another form", result('[{"rows":5}]'), "the answer is no transaction's"],
  ["rows that are none", result('[{"rows":[null]}]'), "the answer is no transaction's"],
  ["an error of another form", `{"id":ID,"result":null,"error":${deep}}`, "it does not say why"],
  ["a long text", `{"id":ID,"result":null,"error":"${"x".repeat(1000)}"}`, "x".repeat(200)],
])("a refusal: %s", async (_, says, text) => {
  const { outcome } = await withServer([says], ask);
  expect(outcome).toBeInstanceOf(Refused);
  expect((outcome as Error).message).toBe(text);
});

test.each<[string, string, string]>([
  ["ten megabytes", result(`["${"x".repeat(10_000_000)}"]`), "sends more than 8 MiB"],
  ["ten megabytes of documents", update("{}").repeat(200_000), "sends more than 8 MiB"],
  ["ten megabytes of braces", "{".repeat(10_000_000), "sends more than 8 MiB"],
  ["something else", "HTTP/1.1 400 Bad Request\r\n", "sends something that is no JSON-RPC"],
  ["bad JSON", "{]}", "sends something that is no JSON-RPC"],
])("%s is an error", async (_, says, text) => {
  // A busy machine may take longer for ten megabytes than a server has time.
  const { outcome } = await withServer([says], (database) => atTime(performance.now(), () => ask(database)));
  expect(outcome).toBeInstanceOf(NoDatabase);
  expect((outcome as Error).message).toContain(text);
});

test("a server that ends before it answers", async () => {
  const { outcome } = await withServer([], ask);
  expect((outcome as Error).message).toContain("has ended");
});

test("a server that never answers", async () => {
  const { outcome } = await withServer([], ask, false);
  expect((outcome as Error).message).toContain("does not answer within 10 s");
}, 60_000);

test("each question has as long as the first", async () => {
  const { outcome } = await withServer([rows, rows], (database) => {
    ask(database);
    return atTime(performance.now() + 60_000, () => ask(database));
  });
  expect(outcome).toEqual([{ name: "ovs0" }]);
});

test("all questions of a verb have as long together as one, over all connections", async () => {
  let now = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => now), add = Documents.prototype.add;
  const receiving = spyOn(Documents.prototype, "add").mockImplementation(function (this: Documents, bytes) {
    now += 4000;
    return add.call(this, bytes);
  });
  const answered: unknown[] = [];
  try {
    const { outcome } = await withServer([rows, rows, rows, rows], (first) => {
      for (let count = 0; count < 2; count++) answered.push(ask(first));
      const second = OvsdbConnection.open(join(directory, String(servers)));
      try {
        for (;;) answered.push(ask(second));
      } finally {
        second.close();
      }
    });
    expect(answered.length).toBe(3);
    expect((outcome as Error).message).toContain("does not answer within 10 s");
    // What is open is over, and what would be opened is not.
    expect(() => OvsdbConnection.open(join(directory, String(servers)))).toThrow("does not answer within 10 s");
  } finally {
    receiving.mockRestore();
    clock.mockRestore();
    endCall();
  }
});

test("an update of another form has nothing in it", async () => {
  const rowsOfAll = '{"Interface":{"a":null,"b":5,"c":{"new":null},"d":{"new":{"ofport":1}}}}';
  const odd = ["null", '"Interface"', "[]", '{"Interface":null}', '{"Interface":{"a":5}}', rowsOfAll].map(update);
  const { outcome } = await withServer([odd.join("") + rows], (database) => {
    ask(database);
    return odd.map(() => database.nextUpdate(performance.now()));
  });
  const last = { Interface: { c: {}, d: { new: { ofport: 1 } } } };
  expect(outcome).toEqual([{}, {}, {}, {}, { Interface: {} }, last]);
});

test("a worker leaves the call when the server takes nobody", () => {
  const path = join(directory, "full"), listening = listenAt(path);
  listenOn(listening, path, 0);
  const first = OvsdbConnection.open(path);
  takeCall({ id: () => undefined, isGone: () => false });
  try {
    expect(() => OvsdbConnection.open(path)).toThrow("left to the caller");
    expect(reasonLeft()).toBe("Open vSwitch");
  } finally {
    endCall();
    first.close();
    closeFile(listening);
  }
});
