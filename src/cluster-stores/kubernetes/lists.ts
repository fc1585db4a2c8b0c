/**
 * Lists, which may be old: the server answers them from memory. Blocks, which are many, come as the columns that kubectl
 * shows, without their objects: a fifth of the bytes, and less than half of the server's work.
 */
import { isObject } from "../../cni/json.ts";
import { recordName } from "../../cluster/decoding.ts";
import { ForeignRecord, StoreSilent } from "../../cluster/effects.ts";
import type { ListedRecords, RecordKind } from "../../cluster/store.ts";
import { type ApiAnswer, JSON_TYPE, type KubernetesApi, TABLE_TYPE } from "./api.ts";
import { pathOf, POOL_LABEL, recordOfObject } from "./objects.ts";
import { apiRefusal, OTHER_KINDS } from "./refusals.ts";

type RecordsAndProblems = Omit<ListedRecords, "revision">;

/** Throws StoreSilent. */
export async function listObjects(api: KubernetesApi, kind: RecordKind, pool?: string): Promise<RecordsAndProblems> {
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
  const items = isObject(body) ? body["items"] : undefined;
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
    const at = columns.findIndex((column) => isObject(column) && column["name"] === name);
    if (at < 0) throw new StoreSilent(`${credential.server} lists no column "${name}": ${OTHER_KINDS}`);
    return { at, part, field };
  });
  return rows.map((row: unknown) => {
    const cells = isObject(row) && Array.isArray(row["cells"]) ? row["cells"] : [];
    const object: Record<"metadata" | "spec", Record<string, unknown>> = { metadata: {}, spec: {} };
    for (const { at, part, field } of places) object[part][field] = cells[at] ?? undefined;
    // Each column costs the server time, and the name has it.
    object.spec["pool"] = recordName(`block/${object.metadata["name"]}`)?.pool;
    return object;
  });
}
