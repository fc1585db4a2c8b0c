/** A cluster's records as objects of Kubernetes: which kind each is, and what of an object is the record. Asks nobody. */
import { isObject, valueAt } from "../../cni/json.ts";
import { recordFrom, recordName } from "../../cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord } from "../../cluster/effects.ts";
import {
  ALARM_KEY,
  type AlarmRecord,
  type BlockRecord,
  type NodeRecord,
  type Stored,
} from "../../cluster/records.ts";
import type { RecordKind } from "../../cluster/store.ts";

export const API_GROUP = "addresses.patchbay.dev", API_VERSION = "v1alpha1";
/** Labels, by which lists are chosen. */
export const POOL_LABEL = `${API_GROUP}/pool`, NODE_LABEL = `${API_GROUP}/node`;

export interface ObjectKind {
  kind: string;
  /** In paths. */
  plural: string;
  /** Keeps the object, after somebody has asked to delete it, until its node has nothing of it any more. */
  finalizer?: string;
}

export const objectKinds: Readonly<Record<RecordKind, ObjectKind>> = {
  pool: { kind: "AddressPool", plural: "addresspools" },
  block: { kind: "AddressBlock", plural: "addressblocks", finalizer: `${API_GROUP}/owned` },
  node: { kind: "AddressNode", plural: "addressnodes", finalizer: `${API_GROUP}/joined` },
  alarm: { kind: "AddressAlarm", plural: "addressalarms" },
};

/** From the server's root on. */
export function pathOf(kind: RecordKind, name?: string): string {
  const path = `/apis/${API_GROUP}/${API_VERSION}/${objectKinds[kind].plural}`;
  return name === undefined ? path : `${path}/${encodeURIComponent(name)}`;
}

type Values = Readonly<Record<string, unknown>>;

/** What others keep in an object, and what tells which one it is. */
export interface ObjectMetadata {
  name: string;
  uid: string;
  resourceVersion: string;
  deletionTimestamp?: string;
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  finalizers?: readonly string[];
  ownerReferences?: readonly unknown[];
}

/** Throws ForeignRecord for what is no object at all. */
export function metadataOf(kind: RecordKind, object: unknown): ObjectMetadata {
  const metadata = valueAt(object, "metadata");
  if (!isObject(metadata)) throw new ForeignRecord(`${kind}/`, "it is no object of Kubernetes");
  const key = keyOfObject(kind, `${metadata["name"]}`);
  for (const field of ["name", "uid", "resourceVersion"]) {
    if (typeof metadata[field] !== "string") throw new ForeignRecord(key, `"metadata.${field}" is no text`);
  }
  return metadata as unknown as ObjectMetadata;
}

/** The alarm is the object of that name; others of its kind are no records. */
export function keyOfObject(kind: RecordKind, name: string): string {
  return kind === "alarm" && name === ALARM_KEY ? ALARM_KEY : `${kind}/${name}`;
}

/** Throws ForeignRecord. Fields that are not known here are a newer version's, and are not the record's. */
export function recordOfObject(kind: RecordKind, object: unknown): Stored<ClusterRecord> {
  const metadata = metadataOf(kind, object), key = keyOfObject(kind, metadata.name);
  const spec = (object as Values)["spec"];
  if (!isObject(spec)) throw new ForeignRecord(key, '"spec" is no object');
  const pool = recordName(key)?.pool;
  if (pool !== undefined && spec["pool"] !== pool) {
    throw new ForeignRecord(key, `"spec.pool" is ${JSON.stringify(spec["pool"])}`);
  }
  requireSize(key, spec);
  return {
    key,
    value: recordFrom(key, values[kind](spec)),
    version: versionFrom(key, metadata.resourceVersion),
    birth: metadata.uid,
    isGoing: metadata.deletionTimestamp !== undefined,
  };
}

/** As etcd has it: nobody needs more, and each list is as large as its records. */
const LIMIT_CHARACTERS = 64 * 1024;

function requireSize(key: string, value: object): void {
  if (JSON.stringify(value).length > LIMIT_CHARACTERS) {
    throw new ForeignRecord(key, `it is larger than ${LIMIT_CHARACTERS >> 10} KB`);
  }
}

/** Throws ForeignRecord for what nobody could read again. */
export function requireReadable(key: string, value: ClusterRecord): void {
  recordFrom(key, value);
  requireSize(key, value);
}

/** To clients it is a text with no meaning; of every server that keeps its objects in etcd it is the revision. */
function versionFrom(key: string, resourceVersion: string): number {
  const version = Number(resourceVersion);
  if (/^[1-9]\d*$/.test(resourceVersion) && Number.isSafeInteger(version)) return version;
  throw new ForeignRecord(
    key,
    `its resourceVersion, ${
      JSON.stringify(resourceVersion)
    }, is no number, and without one nobody can tell that the ` +
      "server has lost changes: use etcd, or a roster",
  );
}

/** From an object's spec to what `recordFrom` reads. */
const values: Record<RecordKind, (spec: Values) => Values> = {
  pool: (spec) => spec,
  node: ({ contested, ...spec }) => ({ ...spec, isContested: contested }),
  block: ({ poolUID, index, node, generation, claim, lastNode }) => {
    const isOwned = [node, generation, claim].some((each) => each !== undefined);
    return { poolBirth: poolUID, index, owner: isOwned ? { node, generation, claim } : undefined, lastNode };
  },
  alarm: (spec) => spec,
};

/** The object to write. What others keep in its metadata stays as it was. */
export function objectFor(key: string, value: ClusterRecord, was?: ObjectMetadata): Values {
  const { kind, name, pool } = recordName(key)!, { kind: objectKind, finalizer } = objectKinds[kind];
  const { spec, node, isHeld } = specOf[kind](value, pool);
  const labels = {
    ...was?.labels,
    ...kind === "block" && { [POOL_LABEL]: pool, [NODE_LABEL]: node },
  };
  const foreign = (was?.finalizers ?? []).filter((each) => each !== finalizer);
  // None may be added to an object that is being deleted.
  const isFinalizerLost = was?.deletionTimestamp !== undefined && foreign.length === was.finalizers?.length;
  return {
    apiVersion: `${API_GROUP}/${API_VERSION}`,
    kind: objectKind,
    metadata: {
      name,
      ...was !== undefined && {
        uid: was.uid,
        resourceVersion: was.resourceVersion,
        annotations: was.annotations,
        ownerReferences: was.ownerReferences,
      },
      labels,
      finalizers: [...foreign, ...isHeld && finalizer !== undefined && !isFinalizerLost ? [finalizer] : []],
      // So the server drops who wrote which field, which is half of a block.
      managedFields: [{}],
    },
    spec,
  };
}

interface Written {
  spec: Values;
  /** Whose it is. */
  node?: string;
  /** Whether deleting the object has to wait. */
  isHeld?: boolean;
}

const specOf: Record<RecordKind, (value: ClusterRecord, pool?: string) => Written> = {
  pool: (value) => ({ spec: { ...value } }),
  node: (value) => {
    const { isContested, ...spec } = value as NodeRecord;
    return { spec: { ...spec, contested: isContested }, isHeld: spec.state !== "off" };
  },
  block: (value, pool) => {
    const { poolBirth, index, owner, lastNode } = value as BlockRecord;
    return {
      spec: { pool, poolUID: poolBirth, index, ...owner, lastNode },
      node: owner?.node,
      isHeld: owner !== undefined,
    };
  },
  alarm: (value) => ({ spec: { ...value as AlarmRecord } }),
};
