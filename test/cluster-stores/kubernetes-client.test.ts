/** The client of the API server beside a server that is busy, wrong, of another version or cut off. */
import { expect, test } from "bun:test";
import { API_GROUP, pathOf } from "../../src/cluster-stores/kubernetes/objects.ts";
import { ForeignRecord } from "../../src/cluster/effects.ts";
import { blockKey, nodeKey, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import { askingOf, installKinds, manifestsIn } from "../support/kubernetes/asking.ts";
import { untilTrue } from "../support/until-true.ts";
import { FakeStage, isMethod, key, made, node, saidBy } from "./kubernetes-stage.ts";

const stage = new FakeStage();

test("too many requests: asked again after the pause, within the limit", async () => {
  let refusals = 2;
  const details = { retryAfterSeconds: 0 };
  stage.cluster.server.instead = () =>
    refusals-- > 0 ? { status: 429, body: { message: "busy", details } } : undefined;
  expect(await made(stage.open())).toMatchObject({ value: node });
  expect(stage.requests.length).toBe(3);
});

test("too many requests, for longer than the limit: nothing was written", async () => {
  stage.cluster.server.instead = () => ({ status: 429, body: "Too many requests, please try again later.\n" });
  expect(await stage.open().put(key, undefined, node)).toEqual({
    refused: `node/n1: ${stage.cluster.url} has too much to do: Too many requests, please try again later.`,
  });
});

test.each<[string, "hang" | "reset" | { status: number; body: object | string }, string]>([
  ["no answer", "hang", "AT: no answer within 2 s"],
  ["the connection ends", "reset", "AT: the connection ended before the answer: the API server has ended"],
  [
    "500",
    { status: 500, body: { message: "etcdserver: request timed out" } },
    "node/n1: AT answers 500: etcdserver: request timed out",
  ],
  ["503", { status: 503, body: "" }, "node/n1: AT answers 503: nothing more"],
])("%s, after it was written: nobody knows, and a read tells", async (_, told, why) => {
  const store = stage.open();
  await made(store);
  stage.cluster.server.afterwards = (request) => isMethod("PUT")(request) ? told : undefined;
  const was = await store.read(key) as Stored<NodeRecord>;
  expect(await store.put(key, was, { ...node, boot: "b2" })).toEqual({
    unknown: why.replace("AT", stage.cluster.url),
  });
  expect((await store.read(key))?.value).toEqual({ ...node, boot: "b2" });
  // A second PUT of the runtime's would have lost against the first.
  expect(stage.requests.filter((each) => each.startsWith("PUT")).length).toBe(1);
});

test("a read without an answer is silent", async () => {
  stage.cluster.server.instead = () => ({ status: 503, body: { message: "not ready" } });
  expect(await saidBy(stage.open().read(key))).toBe(`${stage.cluster.url} answers 503: not ready`);
  expect(await saidBy(stage.open().list("block"))).toBe(`${stage.cluster.url} answers 503: not ready`);
});

test("the server is elsewhere: nobody is followed", async () => {
  stage.cluster.server.instead = () => ({ status: 302, body: "" });
  expect(await stage.open().put(key, undefined, node)).toEqual({
    refused: `node/n1: ${stage.cluster.url} answers 302: nothing more`,
  });
});

test("a kind of another version, which drops a field: what was sent is not what is there", async () => {
  const [definition] = manifestsIn("crds.yaml").filter(({ spec }) => JSON.stringify(spec).includes('"AddressNode"'));
  const ask = askingOf(stage.cluster),
    path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/addressnodes.${API_GROUP}`;
  await ask("DELETE", path);
  const text = JSON.stringify(definition).replaceAll('"contested"', '"disputed"');
  await installKinds(ask, [JSON.parse(text)]);
  expect(await stage.open().put(key, undefined, { ...node, isContested: true })).toEqual({
    unknown:
      `node/n1 is not in ${stage.cluster.url} as it was sent: the kinds of ${API_GROUP} that are installed are of another ` +
      "version: kubectl apply -f crds.yaml",
  });
});

test("a kind of another version, which has no such columns, is not listed", async () => {
  stage.cluster.server.instead = ({ path }) =>
    path.includes("includeObject=None")
      ? { status: 200, body: { kind: "Table", columnDefinitions: [{ name: "Name" }], rows: [] } }
      : undefined;
  expect(await saidBy(stage.open().list("block"))).toContain('lists no column "UID": the kinds of');
});

test("a server whose versions are no numbers is refused", async () => {
  const object = {
    apiVersion: "x",
    kind: "AddressNode",
    metadata: { name: "n1", uid: "u", resourceVersion: "a7" },
    spec: node,
  };
  stage.cluster.server.instead = () => ({ status: 200, body: object });
  const error = await stage.open().read(key).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ForeignRecord);
  expect((error as Error).message).toContain('its resourceVersion, "a7", is no number');
  expect(await saidBy(stage.open().list("alarm"))).toContain("answers a list without a number for its version");
});

test("answers that are none", async () => {
  for (const body of ["", "<html>", [], { items: 7 }]) {
    stage.cluster.server.instead = () => ({ status: 200, body });
    const store = stage.open();
    expect(await saidBy(store.read(key))).toBe("node/ is no record: it is no object of Kubernetes");
    expect(await saidBy(store.list("node"))).toContain(stage.cluster.url);
    expect(await saidBy(store.list("block"))).toContain(stage.cluster.url);
    expect(await store.put(key, undefined, node)).toEqual({
      unknown: "node/ is no record: it is no object of Kubernetes",
    });
  }
});

test("lists of one second share the question for the newest revision", async () => {
  const store = stage.open();
  await Promise.all(["block", "node", "pool"].map((kind) => store.list(kind as "block")));
  const asked = stage.requests.filter((each) => each.includes("limit=1"));
  expect(asked).toEqual([`GET ${pathOf("alarm")}?limit=1`]);
  expect(stage.requests.filter((each) => each.includes("resourceVersion=0")).length).toBe(3);
});

test("a second list of a second is not asked for, and has what was written since", async () => {
  const store = stage.open(), was = await made(store);
  const lists = () => stage.requests.filter((each) => each.includes("resourceVersion=0")).length;
  expect((await store.list("node")).records).toEqual([was]);
  const other = await store.put(nodeKey("n2"), undefined, node) as { won: Stored<NodeRecord> };
  const { won } = await store.put(key, was, { ...node, state: "off" }) as { won: Stored<NodeRecord> };
  const first = await store.list("node");
  expect(first.records).toEqual([other.won, won]);
  expect(await store.put(key, won, undefined)).toEqual({ won: undefined });
  expect((await store.list("node")).records).toEqual([other.won]);
  expect([first.records, lists()]).toEqual([[other.won, won], 1]);

  await stage.open().put(nodeKey("n3"), undefined, node);
  expect((await store.list("node")).records).toEqual([other.won]);
  expect(await store.put(nodeKey("n3"), undefined, node)).toBe("lost");
  expect((await store.list("node")).records.map((record) => record.key)).toEqual([nodeKey("n2"), nodeKey("n3")]);
  expect(lists()).toBe(2);
});

test("a list that failed is asked for anew", async () => {
  const store = stage.open();
  stage.cluster.server.instead = () => ({ status: 500, body: "" });
  expect(await saidBy(store.list("node"))).toContain("answers 500");
  stage.cluster.server.instead = () => undefined;
  expect((await store.list("node")).records).toEqual([]);
});

test("what decides says no version, and a put says the object's own", async () => {
  const store = stage.open(), was = await made(store);
  await store.put(key, was, { ...node, boot: "b2" });
  const path = pathOf("node");
  expect(stage.requests).toEqual([
    `POST ${path}?fieldValidation=Strict`,
    `GET ${path}/n1`,
    `PUT ${path}/n1?fieldValidation=Strict`,
  ]);
});

test("a watch ends with the server's reason", async () => {
  const store = stage.open(), signal = new AbortController().signal, told = () => count++;
  const expired = { code: 410, message: "too old resource version" };
  let count = 0;
  stage.cluster.server.instead = ({ path }) =>
    path.includes("watch=true")
      ? { status: 200, body: `${JSON.stringify({ type: "ERROR", object: expired })}\n` }
      : undefined;
  expect(await store.watch(key, told, signal)).toBe("the server ended it: 410 too old resource version");
  expect(count).toBe(1);
  stage.cluster.server.instead = ({ path }) =>
    path.includes("watch=true") ? { status: 500, body: { message: "no" } } : undefined;
  expect(await store.watch(key, told, signal)).toBe(`${stage.cluster.url} answers 500: no`);
  stage.cluster.server.instead = ({ path }) => path.includes("watch=true") ? { status: 200, body: "" } : undefined;
  expect(await store.watch(key, told, signal)).toMatch(/^its \d+ s were over$/);
  stage.cluster.server.instead = () => "reset";
  expect(await store.watch(key, told, signal)).toContain(`${stage.cluster.url}: the connection ended`);
  stage.cluster.server.instead = () => "hang";
  expect(await store.watch(key, told, signal)).toBe(`${stage.cluster.url}: no answer within 2 s`);
});

test("a watch that ends by itself, of that name alone; closing the store ends it", async () => {
  const store = stage.open(), ended = store.watch(blockKey("lan", 3), () => {}, new AbortController().signal);
  const [asked] = await untilTrue(() => stage.requests, ({ length }) => length > 0);
  const { searchParams } = new URL(asked!.slice("GET ".length), stage.cluster.url);
  expect(Object.fromEntries(searchParams)).toMatchObject({ watch: "true", fieldSelector: "metadata.name=lan.3" });
  const seconds = Number(searchParams.get("timeoutSeconds"));
  expect(seconds >= 64 && seconds <= 76).toBe(true);
  store.close();
  expect(await ended).toBe(`${stage.cluster.url}: it was no longer wanted`);
});

test("what nobody could read again is not written, and nobody is asked", async () => {
  const store = stage.open(), exclude = Array(7000).fill("10.1.0.1");
  const large = { layout: "flat", ranges: [{ cidr: "10.1.0.0/16", blockSize: 1, exclude }] };
  for (
    const [at, value, why] of [
      ["node/N1", node, "no record has such a name"],
      [key, { ...node, generation: 0 }, '"generation" is no whole number from 1 on'],
      ["pool/large", large, "it is larger than 64 KB"],
    ] as const
  ) {
    expect(await store.put(at, undefined, value)).toEqual({
      refused: `${at} is not written: ${at} is no record: ${why}`,
    });
  }
  expect(await saidBy(store.read("thing/x"))).toBe("thing/x is no key of a record");
  expect(await store.watch("thing/x", () => {}, new AbortController().signal)).toBe("thing/x is no key of a record");
  expect(stage.requests).toEqual([]);
});

test("what another program has made too large is no record", async () => {
  const exclude = Array(7000).fill("10.1.0.1"),
    spec = { layout: "flat", ranges: [{ cidr: "10.1.0.0/16", blockSize: 1, exclude }] };
  const object = { apiVersion: `${API_GROUP}/v1alpha1`, kind: "AddressPool", metadata: { name: "large" }, spec };
  expect((await askingOf(stage.cluster)("POST", pathOf("pool"), object)).status).toBe(201);
  const why = "pool/large is no record: it is larger than 64 KB";
  expect(await saidBy(stage.open().read("pool/large"))).toBe(why);
  expect(await stage.open().list("pool")).toMatchObject({ records: [], problems: [why] });
});
