/**
 * Lists, which may be old: the server answers them from memory. Blocks, which are many, come as the columns that kubectl
 * shows, without their objects: a fifth of the bytes, and less than half of the server's work. That is still ten times the
 * work of a claim, so what is asked within a second shares one answer, with what this process has written since.
 */
import { isObject, valueAt } from "../../cni/json.ts";
import { recordName } from "../../cluster/decoding.ts";
import { ForeignRecord, StoreSilent } from "../../cluster/effects.ts";
import type { ListedRecords, RecordKind, StoreOutcome } from "../../cluster/store.ts";
import { type ApiAnswer, JSON_TYPE, type KubernetesApi, TABLE_TYPE } from "./api.ts";
import { pathOf, POOL_LABEL, recordOfObject } from "./objects.ts";
import { Revisions } from "./reading.ts";
import { apiRefusal, OTHER_KINDS } from "./refusals.ts";

/** Blocks that others claim meanwhile are lost, and then asked for anew. */
const SHARED_MS = 1000;

interface SharedList {
  kind: RecordKind;
  pool: string | undefined;
  at: number;
  listed: Promise<ListedRecords>;
}

export class ObjectLists {
  private shared: SharedList[] = [];
  private readonly revisions: Revisions;

  constructor(private readonly api: KubernetesApi) {
    this.revisions = new Revisions(api);
  }

  /** Throws StoreSilent. */
  async list(kind: RecordKind, pool?: string): Promise<ListedRecords> {
    const at = performance.now();
    this.shared = this.shared.filter((one) => at - one.at < SHARED_MS);
    const known = this.shared.find((one) => one.kind === kind && one.pool === pool);
    return await (known ?? this.begin(kind, pool, at)).listed;
  }

  /** What this process has written is in its lists; where another was faster, they are too old. */
  noteWritten(key: string, outcome: StoreOutcome): void {
    const named = recordName(key);
    const concerned = this.shared.filter(({ kind, pool }) =>
      kind === named?.kind && (pool === undefined || pool === named.pool)
    );
    if (typeof outcome !== "object" || !("won" in outcome)) return this.forget(concerned);
    const { won } = outcome;
    for (const list of concerned) {
      list.listed = list.listed.then(({ records, ...rest }) => {
        const found = records.find((record) => record.key === key);
        if (found !== undefined && won !== undefined && found.version > won.version) return { ...rest, records };
        const others = records.filter((record) => record !== found);
        return { ...rest, records: won === undefined ? others : [...others, won] };
      });
      list.listed.catch(() => {});
    }
  }

  private begin(kind: RecordKind, pool: string | undefined, at: number): SharedList {
    const revision = this.revisions.newest();
    // A question after a failure does not share one that is about to fail, too.
    const asked = listObjects(this.api, kind, pool).finally(() => revision.catch(() => {}));
    const listed = Promise.all([asked, revision]).then(([records, newest]) => ({ ...records, revision: newest }));
    const list: SharedList = { kind, pool, at, listed };
    this.shared.push(list);
    listed.catch(() => this.forget([list]));
    return list;
  }

  private forget(lists: readonly SharedList[]): void {
    this.shared = this.shared.filter((one) => !lists.includes(one));
  }
}

type RecordsAndProblems = Omit<ListedRecords, "revision">;

async function listObjects(api: KubernetesApi, kind: RecordKind, pool?: string): Promise<RecordsAndProblems> {
  const isTable = kind === "block";
  const query = [
    "resourceVersion=0",
    ...isTable ? ["includeObject=None"] : [],
    ...pool === undefined ? [] : [`labelSelector=${encodeURIComponent(`${POOL_LABEL}=${pool}`)}`],
  ];
  const accept = isTable ? TABLE_TYPE : JSON_TYPE;
  const answer = await api.ask({ method: "GET", path: `${pathOf(kind)}?${query.join("&")}`, accept });
  if (answer.status !== 200) throw new StoreSilent(apiRefusal(answer));
  return collected(isTable ? objectsInTable(answer) : objectsIn(answer), kind);
}

function collected(objects: readonly unknown[], kind: RecordKind): RecordsAndProblems {
  const records: ListedRecords["records"] = [], problems: string[] = [];
  for (const object of objects) {
    try {
      records.push(recordOfObject(kind, object));
    } catch (error) {
      if (!(error instanceof ForeignRecord)) throw error;
      problems.push(error.message);
    }
  }
  return { records, problems };
}

function objectsIn({ body, credential }: ApiAnswer): readonly unknown[] {
  const items = valueAt(body, "items");
  if (!Array.isArray(items)) throw new StoreSilent(`${credential.server} answers no list`);
  return items;
}

/** Where each column is from: crds.yaml has them. */
const COLUMNS: Readonly<Record<string, readonly [part: "metadata" | "spec", field: string]>> = {
  Name: ["metadata", "name"],
  UID: ["metadata", "uid"],
  Version: ["metadata", "resourceVersion"],
  Going: ["metadata", "deletionTimestamp"],
  "Pool UID": ["spec", "poolUID"],
  Index: ["spec", "index"],
  Node: ["spec", "node"],
  Generation: ["spec", "generation"],
  Claim: ["spec", "claim"],
  "Last Node": ["spec", "lastNode"],
};

/** As far as the columns say. */
function objectsInTable({ body, credential }: ApiAnswer): readonly unknown[] {
  const { columnDefinitions: columns, rows = [] } = isObject(body) ? body : {};
  if (!Array.isArray(columns) || !Array.isArray(rows)) throw new StoreSilent(`${credential.server} answers no table`);
  const places = Object.entries(COLUMNS).map(([name, [part, field]]) => {
    const at = columns.findIndex((column) => valueAt(column, "name") === name);
    if (at < 0) throw new StoreSilent(`${credential.server} lists no column "${name}": ${OTHER_KINDS}`);
    return { at, part, field };
  });
  return rows.map((row: unknown) => {
    const found = valueAt(row, "cells"), cells = Array.isArray(found) ? found : [];
    const object: Record<"metadata" | "spec", Record<string, unknown>> = { metadata: {}, spec: {} };
    for (const { at, part, field } of places) object[part][field] = cells[at] ?? undefined;
    // Each column costs the server time, and the name has it.
    object.spec["pool"] = recordName(`block/${object.metadata["name"]}`)?.pool;
    return object;
  });
}
