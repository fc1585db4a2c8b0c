/**
 * A cluster in real API servers of Kubernetes: two of them before one etcd. kubernetes-real.test.ts runs this file in a network
 * of its own.
 *
 * Longer than 300 lines: a list of cases, for servers that take long to start.
 */
import { afterAll, expect, test } from "bun:test";
import { openKubernetes } from "../../src/cluster-stores/kubernetes.ts";
import { API_GROUP, pathOf } from "../../src/cluster-stores/kubernetes/objects.ts";
import { StoreSilent } from "../../src/cluster/effects.ts";
import { blockKey, type BlockRecord, nodeKey, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import type { ClusterStore, StoreOutcome } from "../../src/cluster/store.ts";
import { askingOf, DEFINITIONS, installKinds, manifestsIn } from "../support/kubernetes/asking.ts";
import { RealCluster } from "../support/kubernetes/real-cluster.ts";
import { untilTrue } from "../support/until-true.ts";
import { everyField } from "./every-field.ts";
import { apiContract } from "./api-contract.ts";
import { storeContract } from "./contract.ts";
import { rawKubernetes } from "./kubernetes-raw.ts";

const cluster = await RealCluster.start(process.env["PATCHBAY_TEST_API_SERVER"]!), [first] = cluster.at;
const ask = askingOf(first!), stores: ClusterStore[] = [];
afterAll(async () => {
  stores.forEach((store) => store.close());
  await cluster[Symbol.asyncDispose]();
});

const token = { token: first!.admin };
const kubeconfigs = [cluster.kubeconfig("first", token), cluster.kubeconfig("second", token, {}, 1)];

function open(kubeconfig = kubeconfigs[0]!, node?: string): ClusterStore {
  const store = openKubernetes({ kubeconfig }, node);
  stores.push(store);
  return store;
}

const node: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };
const block = (claim: string, index = 1): BlockRecord => ({
  poolBirth: "u",
  index,
  owner: { node: "n1", generation: 1, claim },
});

function won(outcome: StoreOutcome): Stored<BlockRecord> {
  if (typeof outcome === "object" && "won" in outcome) return outcome.won as Stored<BlockRecord>;
  throw new Error(`not won: ${JSON.stringify(outcome)}`);
}

test("before the kinds are installed, sentences say how to do that", async () => {
  const why = `${first!.url} has no kinds of ${API_GROUP}: kubectl apply -f crds.yaml`;
  const said = await open().read(nodeKey("n1")).catch((error: unknown) => error);
  expect(said).toEqual(new StoreSilent(why));
  expect(await open().put(nodeKey("n1"), undefined, node)).toEqual({ refused: `node/n1: ${why}` });
  await installKinds(ask);
  for (const { kind, metadata, ...rest } of manifestsIn("rbac.yaml") as { kind: string; metadata: object }[]) {
    const path = kind === "ServiceAccount"
      ? "/api/v1/namespaces/kube-system/serviceaccounts"
      : `/apis/rbac.authorization.k8s.io/v1/${kind.toLowerCase()}s`;
    expect((await ask("POST", path, { kind, metadata, ...rest })).status).toBe(201);
  }
});

apiContract("the real API server", () => Promise.resolve(first!));

let opened = 0;
storeContract(
  "a store in real API servers",
  () => Promise.resolve({ store: open(kubeconfigs[opened++ % 2]), raw: rawKubernetes(ask) }),
);

test("each field of a record is one of its kind", async () => {
  for (const [key, value] of Object.entries(everyField)) {
    const made = won(await open().put(key, undefined, value));
    expect(made.value as object).toEqual(value);
    await rawKubernetes(ask).delete(key);
  }
});

test("kubectl's columns say whose a block is, and who is joined", async () => {
  await open().put(blockKey("columns", 1), undefined, block("c"));
  const shown = async (path: string, name: string) => {
    const table = await fetch(`${first!.url}${path}`, {
      tls: { ca: first!.ca },
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io", authorization: `Bearer ${first!.admin}` },
    } as RequestInit).then((answer) => answer.json());
    const { columnDefinitions, rows } = table as {
      columnDefinitions: { name: string; priority: number }[];
      rows: { cells: unknown[] }[];
    };
    const cells = rows.find(({ cells }) => cells[0] === name)!.cells;
    return columnDefinitions.flatMap(({ name, priority }, at) => priority === 0 ? [[name, cells[at]]] : []);
  };
  expect(await shown(pathOf("block"), "columns.1")).toEqual([
    ["Name", "columns.1"],
    ["Pool", "columns"],
    ["Node", "n1"],
    ["Going", null],
    ["Last Node", null],
    ["Age", expect.stringMatching(/^\d+s$/)],
  ]);
  won(await open().put(nodeKey("columns"), undefined, { ...node, isContested: true }));
  expect((await shown(pathOf("node"), "columns")).slice(0, 4)).toEqual([
    ["Name", "columns"],
    ["State", "joined"],
    ["Generation", 1],
    ["Contested", true],
  ]);
});

test("the newest revision never falls from one server to the next", async () => {
  const asked = [open(kubeconfigs[0]), open(kubeconfigs[1])];
  let last = 0;
  for (let round = 0; round < 20; round++) {
    won(await asked[0]!.put(blockKey("fall", round), undefined, block("c", round)));
    for (const kubeconfig of kubeconfigs) {
      // Each is asked anew: the lists of a second share one answer.
      const { revision } = await open(kubeconfig).list("block", "fall");
      expect(revision).toBeGreaterThanOrEqual(last);
      last = revision;
    }
  }
});

test("what others keep in an object stays, and a deletion waits for their finalizers", async () => {
  const store = open(), key = blockKey("others", 1), path = pathOf("block", "others.1");
  const made = won(await store.put(key, undefined, block("c"))), { body } = await ask("GET", path);
  const metadata = {
    ...body.metadata,
    labels: { ...body.metadata.labels, rack: "7" },
    annotations: { note: "x" },
    finalizers: [...body.metadata.finalizers, "example.org/other"],
  };
  await ask("PUT", path, { ...body, metadata });
  expect(await store.put(key, made, block("d"))).toBe("lost");
  const seen = await store.read(key) as Stored<BlockRecord>;
  const put = won(await store.put(key, seen, { poolBirth: "u", index: 1, lastNode: "n1" }));
  expect((await ask("GET", path)).body.metadata).toMatchObject({
    labels: { rack: "7" },
    annotations: { note: "x" },
    finalizers: ["example.org/other"],
  });
  expect(await store.put(key, put, undefined)).toEqual({
    unknown: "block/others.1 is being deleted, and waits for its finalizers: example.org/other",
  });
  expect((await store.read(key))?.isGoing).toBe(true);
  await rawKubernetes(ask).delete(key);
});

test("a block that somebody deletes stays until its owner gives it back, and a node until it is off", async () => {
  const store = open(), key = blockKey("deleted", 1);
  won(await store.put(key, undefined, block("c")));
  won(await store.put(nodeKey("deleted"), undefined, node));
  await ask("DELETE", pathOf("block", "deleted.1"));
  await ask("DELETE", pathOf("node", "deleted"));
  const going = await store.read(key) as Stored<BlockRecord>, goingNode = await store.read(nodeKey("deleted"));
  expect([going.isGoing, goingNode?.isGoing, going.value]).toEqual([true, true, block("c")]);
  won(await store.put(key, going, { poolBirth: "u", index: 1, lastNode: "n1" }));
  won(await store.put(nodeKey("deleted"), goingNode, { ...node, state: "off" }));
  expect([await store.read(key), await store.read(nodeKey("deleted"))]).toEqual([undefined, undefined]);
});

test("who is asked by a client's certificate, by a token in a file and by a program is known", async () => {
  const { certFile, keyFile } = cluster.certificateFor("admin", "system:masters");
  const tokenFile = cluster.certificates.file("token", `${first!.admin}\n`);
  const status = { token: first!.admin };
  const program = cluster.certificates.file(
    "credential",
    `#!/bin/sh\necho '${
      JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status })
    }'\n`,
    0o700,
  );
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: program, interactiveMode: "Never" };
  const users = {
    certificate: { "client-certificate": certFile, "client-key": keyFile },
    file: { tokenFile },
    exec: { exec },
  };
  for (const [name, user] of Object.entries(users)) {
    const store = open(cluster.kubeconfig(`by-${name}`, user, { "tls-server-name": "kubernetes.default.svc" }));
    won(await store.put(nodeKey(`by-${name}`), undefined, node));
  }
});

test("an agent's role claims and frees, raises the alarm, writes no pool, and deletes nothing", async () => {
  const { body } = await ask("POST", "/api/v1/namespaces/kube-system/serviceaccounts/patchbay-node/token", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: 3600 },
  });
  const { certFile, keyFile } = cluster.certificateFor("system:node:n2", "system:nodes");
  const users = {
    "system:serviceaccount:kube-system:patchbay-node": { token: body.status.token },
    "system:node:n2": { "client-certificate": certFile, "client-key": keyFile },
  };
  for (const [name, user] of Object.entries(users)) {
    const store = open(cluster.kubeconfig(`role-of-${name}`, user)), admin = open();
    const claimed = won(await store.put(blockKey("role", 1), undefined, block("c")));
    const freed = won(await store.put(blockKey("role", 1), claimed, { poolBirth: "u", index: 1, lastNode: "n1" }));
    const alarm = won(await store.put("alarm", undefined, { by: "n1", saw: "less" }));
    const pool = won(await admin.put("pool/role", undefined, everyField["pool/routed-fields"]!));
    expect((await store.list("pool")).records).toContainEqual(pool);
    const why = (key: string, verb: string, plural: string) => ({
      refused: expect.stringMatching(
        new RegExp(
          `^${key}: .*User "${name}" cannot ${verb} resource "${plural}" in API group "${API_GROUP}".*rbac.yaml`,
        ),
      ),
    });
    expect(await store.put("pool/own", undefined, everyField["pool/routed-fields"]!))
      .toEqual(why("pool/own", "create", "addresspools"));
    expect(await store.put("pool/role", pool, { ...pool.value as object, state: "open" } as never))
      .toEqual(why("pool/role", "update", "addresspools"));
    expect(await store.put(freed.key, freed, undefined)).toEqual(why(freed.key, "delete", "addressblocks"));
    expect(await store.put("alarm", alarm, undefined)).toEqual(why("alarm", "delete", "addressalarms"));
    expect(await store.put("alarm", alarm, { by: "n1", saw: "more" } as never))
      .toEqual(why("alarm", "update", "addressalarms"));
    for (const record of [freed, alarm, pool]) {
      expect(await admin.put(record.key, record, undefined)).toEqual({ won: undefined });
    }
  }
});

test("RBAC alone does not hold a node to its own records: one frees another's block, and writes its record", async () => {
  const { certFile, keyFile } = cluster.certificateFor("system:node:n2", "system:nodes");
  const hostile = open(cluster.kubeconfig("hostile", { "client-certificate": certFile, "client-key": keyFile }));
  const claimed = won(await open().put(blockKey("hostile", 1), undefined, block("c")));
  won(await hostile.put(blockKey("hostile", 1), claimed, { poolBirth: "u", index: 1 }));
  won(await hostile.put(nodeKey("n1-of-another"), undefined, node));
});

test("a credential that is withdrawn is read again, and then says where it is from", async () => {
  const tokenFile = cluster.certificates.file("rotated", first!.admin);
  const store = open(cluster.kubeconfig("rotating", { tokenFile }));
  expect(await store.read(nodeKey("absent"))).toBeUndefined();
  cluster.certificates.file("rotated", "an-old-one");
  const other = open(cluster.kubeconfig("rotating-too", { tokenFile }));
  const said = await other.read(nodeKey("absent")).catch(({ message }: Error) => message);
  expect(said).toMatch(
    new RegExp(`^${first!.url} does not know the token in ${tokenFile} \\(written \\d+ s ago\\): it has expired`),
  );
  cluster.certificates.file("rotated", first!.admin);
  expect(await other.read(nodeKey("absent"))).toBeUndefined();
});

test("while etcd does nothing, reads are silent, and nobody knows of what is written", async () => {
  const store = open(), key = blockKey("stopped", 1);
  won(await store.put(key, undefined, block("before")));
  const { said, put } = await cluster.whileStopped(async () => ({
    said: await Promise.all(
      [store.read(key), store.list("block", "stopped")].map((asked) =>
        asked.then(() => undefined, ({ message }: Error) => message)
      ),
    ),
    put: await store.put(blockKey("stopped", 2), undefined, block("meanwhile", 2)),
  }));
  expect(said).toEqual(Array(2).fill(`${first!.url}: no answer within 2 s`));
  expect(put).toEqual({ unknown: `${first!.url}: no answer within 2 s` });
  const now = await untilTrue(() => store.read(key).catch(() => undefined), (found) => found !== undefined);
  expect(now?.value).toEqual(block("before"));
});

test("restored under running servers: reads say what is, lists what was, and the newest revision falls", async () => {
  const [own, other] = [open(kubeconfigs[0]), open(kubeconfigs[1])], key = blockKey("restored", 1);
  const made = won(await own.put(key, undefined, { poolBirth: "u", index: 1 }));
  cluster.snapshot("before");
  const first = won(await own.put(key, made, block("first"))), before = await own.list("block", "restored");
  expect(before.revision).toBeGreaterThanOrEqual(first.version);
  await cluster.restore("before");
  const found = await untilTrue(() => other.read(key).catch(() => undefined), (record) => record !== undefined);
  expect(found).toEqual(made);
  const second = won(
    await other.put(key, made, { ...block("second"), owner: { node: "n2", generation: 1, claim: "second" } }),
  );

  // The server gives the version out again, and the object is the same: only the value tells.
  expect([second.version, second.birth]).toEqual([first.version, first.birth]);
  expect(await own.read(key)).toEqual(second);
  expect(await own.put(key, first, { poolBirth: "u", index: 1, lastNode: "n1" })).toBe("lost");
  expect((await own.list("block", "restored")).records).toEqual([first]);

  await cluster.stopServers();
  await cluster.startServers();
  expect((await open().list("block", "restored")).records).toEqual([second]);
});

test("the newest revision of a store that was restored is lower", async () => {
  const store = open(), key = (index: number) => blockKey("lower", index);
  cluster.snapshot("lower");
  for (let index = 0; index < 5; index++) won(await store.put(key(index), undefined, block("c", index)));
  const { revision } = await store.list("block", "lower");
  await cluster.restore("lower");
  await untilTrue(() => store.read(key(0)).catch(() => "silent"), (found) => found === undefined);
  expect((await open().list("block", "lower")).revision).toBeLessThan(revision);
  await cluster.stopServers();
  await cluster.startServers();
});

test("a kind that somebody deletes: blocks with an owner stay until they are given back, nothing is claimed", async () => {
  const store = open(), key = blockKey("kind", 1);
  won(await store.put(key, undefined, block("c")));
  await ask("DELETE", `${DEFINITIONS}/addressblocks.${API_GROUP}`);
  const going = await untilTrue(() => store.read(key), (found) => found!.isGoing);
  // Each server learns of it by itself.
  let index = 2;
  const put = () => store.put(blockKey("kind", index), undefined, block("c", index++));
  expect(await untilTrue(put, (outcome) => typeof outcome === "object" && "refused" in outcome)).toEqual({
    refused: expect.stringContaining(`somebody deletes the kinds of ${API_GROUP}`),
  });
  won(await store.put(key, going as Stored<BlockRecord>, { poolBirth: "u", index: 1, lastNode: "n1" }));
  // What the other tests have claimed.
  for (const { metadata } of (await ask("GET", pathOf("block"))).body.items) {
    await rawKubernetes(ask).delete(`block/${metadata.name}`);
  }
  await untilTrue(() => ask("GET", `${DEFINITIONS}/addressblocks.${API_GROUP}`), ({ status }) => status === 404);
  const isSaid = (outcome: StoreOutcome) => JSON.stringify(outcome).includes("kubectl apply -f crds.yaml");
  expect(await untilTrue(() => store.put(key, undefined, block("d")), isSaid)).toMatchObject({
    refused: expect.any(String),
  });
});
