/** Records as objects of Kubernetes and back, and the kinds that are installed for them. */
import { expect, test } from "bun:test";
import {
  API_GROUP,
  API_VERSION,
  metadataOf,
  NODE_LABEL,
  objectFor,
  objectKinds,
  type ObjectMetadata,
  pathOf,
  POOL_LABEL,
  recordOfObject,
} from "../../src/cluster-stores/kubernetes/objects.ts";
import { recordName } from "../../src/cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord } from "../../src/cluster/effects.ts";
import type { BlockRecord } from "../../src/cluster/records.ts";
import { manifestsIn } from "../support/kubernetes/asking.ts";
import { everyField } from "./every-field.ts";

const metadata = (name: string, more: Partial<ObjectMetadata> = {}): ObjectMetadata => ({
  ...{ name, uid: "u1", resourceVersion: "7", ...more },
});
/** As the server has it. */
const sent = (key: string, value: ClusterRecord, more?: Partial<ObjectMetadata>) => {
  const object = JSON.parse(JSON.stringify(objectFor(key, value)));
  return { ...object, metadata: { ...object.metadata, ...metadata(recordName(key)!.name, more) } };
};

const owned: BlockRecord = {
  poolBirth: "p",
  index: 3,
  owner: { node: "n1", generation: 2, claim: "c" },
  lastNode: "n2",
};
const free: BlockRecord = { poolBirth: "p", index: 3, lastNode: "n1" };

test.each(Object.entries(everyField))("%s comes back as it was", (key, value) => {
  const { kind } = recordName(key)!;
  expect(recordOfObject(kind, sent(key, value))).toEqual({ key, value, version: 7, birth: "u1", isGoing: false });
});

test("a block has its owner in fields, and labels for lists", () => {
  expect(JSON.parse(JSON.stringify(objectFor("block/lan.3", owned)))).toEqual({
    apiVersion: `${API_GROUP}/${API_VERSION}`,
    kind: "AddressBlock",
    metadata: {
      name: "lan.3",
      labels: { [POOL_LABEL]: "lan", [NODE_LABEL]: "n1" },
      finalizers: [`${API_GROUP}/owned`],
      managedFields: [{}],
    },
    spec: { pool: "lan", poolUID: "p", index: 3, node: "n1", generation: 2, claim: "c", lastNode: "n2" },
  });
  const { metadata: freed, spec } = JSON.parse(JSON.stringify(objectFor("block/lan.3", free)));
  expect([freed.labels, freed.finalizers, spec]).toEqual([
    { [POOL_LABEL]: "lan" },
    [],
    { pool: "lan", poolUID: "p", index: 3, lastNode: "n1" },
  ]);
});

test("a node's record is held while it has not left", () => {
  const finalizers = (state: "joined" | "draining" | "off") => {
    const object = objectFor("node/n1", { generation: 1, machine: "m", boot: "b", state });
    return (object["metadata"] as { finalizers: string[] }).finalizers;
  };
  const held = [`${API_GROUP}/joined`];
  expect([finalizers("joined"), finalizers("draining"), finalizers("off")]).toEqual([held, held, []]);
});

test("what others keep in the metadata stays, and no finalizer is added to what is being deleted", () => {
  const was = metadata("lan.3", {
    labels: { rack: "7", [NODE_LABEL]: "n1" },
    annotations: { note: "x" },
    finalizers: ["example.org/other", `${API_GROUP}/owned`],
    ownerReferences: [{ uid: "o" }],
  });
  const written = (value: BlockRecord, before: ObjectMetadata) =>
    JSON.parse(JSON.stringify(objectFor("block/lan.3", value, before))).metadata;
  expect(written(free, was)).toEqual({
    ...{ name: "lan.3", uid: "u1", resourceVersion: "7", managedFields: [{}] },
    labels: { rack: "7", [POOL_LABEL]: "lan" },
    annotations: { note: "x" },
    finalizers: ["example.org/other"],
    ownerReferences: [{ uid: "o" }],
  });
  const going = { ...was, deletionTimestamp: "2026-01-01T00:00:00Z" };
  expect(written(owned, going).finalizers).toEqual(was.finalizers);
  expect(written(owned, { ...going, finalizers: ["example.org/other"] }).finalizers).toEqual(["example.org/other"]);
});

test("somebody's wish to delete it is seen", () => {
  expect(recordOfObject("block", sent("block/lan.3", owned, { deletionTimestamp: "2026-01-01T00:00:00Z" })).isGoing)
    .toBe(true);
});

test("a field of a newer version is not the record's", () => {
  const object = sent("block/lan.3", owned);
  object.spec.tunnel = "x";
  expect(recordOfObject("block", object).value).toEqual(owned);
});

const block = sent("block/lan.3", owned);
test.each<[string, unknown, string]>([
  ["nothing", undefined, "block/ is no record: it is no object of Kubernetes"],
  ["a list", [], "block/ is no record: it is no object of Kubernetes"],
  [
    "no uid",
    { ...block, metadata: { ...block.metadata, uid: 7 } },
    'block/lan.3 is no record: "metadata.uid" is no text',
  ],
  ["no spec", { ...block, spec: undefined }, 'block/lan.3 is no record: "spec" is no object'],
  [
    "another pool",
    { ...block, spec: { ...block.spec, pool: "wan" } },
    'block/lan.3 is no record: "spec.pool" is "wan"',
  ],
  ["another index", { ...block, spec: { ...block.spec, index: 4 } }, 'block/lan.3 is no record: "index" is 4'],
  [
    "half an owner",
    { ...block, spec: { ...block.spec, claim: undefined } },
    'block/lan.3 is no record: "claim" is no text',
  ],
  [
    "a name of no block",
    { ...block, metadata: { ...block.metadata, name: "lan" } },
    "block/lan is no record: no record has such a name",
  ],
  [
    "a version that is no number",
    { ...block, metadata: { ...block.metadata, resourceVersion: "a7" } },
    'block/lan.3 is no record: its resourceVersion, "a7", is no number, and without one nobody can tell that the server ' +
    "has lost changes: use etcd, or a roster",
  ],
])("%s is no record", (_, object, message) => {
  const read = () => recordOfObject("block", object);
  expect(read).toThrow(ForeignRecord);
  expect(read).toThrow(message);
});

test("there is one alarm, and other objects of its kind are none", () => {
  expect(recordOfObject("alarm", sent("alarm", everyField["alarm"]!)).key).toBe("alarm");
  const other = sent("alarm", everyField["alarm"]!, { name: "alarm-2" });
  expect(() => recordOfObject("alarm", other)).toThrow("alarm/alarm-2 is no record: no record has such a name");
  expect(metadataOf("alarm", other).name).toBe("alarm-2");
});

test("the kinds that are installed are these", () => {
  const installed = manifestsIn("crds.yaml").map(({ metadata, spec }) => {
    const { group, scope, names, versions } = spec as {
      group: string;
      scope: string;
      names: { kind: string; plural: string };
      versions: [{ name: string; served: boolean; storage: boolean }];
    };
    const [{ name, served, storage }] = versions;
    expect([scope, served, storage, (metadata as { name: string }).name]).toEqual([
      ...["Cluster", true, true, `${names.plural}.${group}`],
    ]);
    return [`/apis/${group}/${name}/${names.plural}`, names.kind];
  });
  const kinds = Object.entries(objectKinds) as ["pool", typeof objectKinds["pool"]][];
  expect(installed.sort()).toEqual(kinds.map(([kind, { kind: name }]) => [pathOf(kind), name]).sort());
});
