/** What decides: one object, read without a version, which the server asks etcd for. */
import { recordName } from "../../cluster/decoding.ts";
import { type ClusterRecord, StoreSilent } from "../../cluster/effects.ts";
import type { Stored } from "../../cluster/records.ts";
import { valueAt } from "../../cni/json.ts";
import { type KubernetesApi } from "./api.ts";
import { metadataOf, type ObjectMetadata, pathOf, recordOfObject } from "./objects.ts";
import { apiRefusal, isKindUnknown } from "./refusals.ts";

export interface FoundObject {
  record: Stored<ClusterRecord>;
  metadata: ObjectMetadata;
}

/** Throws StoreSilent, and ForeignRecord. */
export async function readObject(api: KubernetesApi, key: string): Promise<FoundObject | undefined> {
  const named = recordName(key);
  if (named === undefined) throw new StoreSilent(`${key} is no key of a record`);
  const answer = await api.ask({ method: "GET", path: pathOf(named.kind, named.name) });
  if (answer.status === 404 && !isKindUnknown(answer)) return undefined;
  if (answer.status !== 200) throw new StoreSilent(apiRefusal(answer));
  return { record: recordOfObject(named.kind, answer.body), metadata: metadataOf(named.kind, answer.body) };
}

const SHARED_MS = 1000;

/**
 * The store's newest change. A list's own number may fall from one server to the next, since each remembers for itself. The
 * list of another kind, of which there is one object or none, costs little: without a version, its number is at least
 * etcd's. The lists of a second share one answer.
 */
export class Revisions {
  private last?: { at: number; answer: Promise<number> };

  constructor(private readonly api: KubernetesApi) {}

  /** Throws StoreSilent. */
  newest(): Promise<number> {
    const at = performance.now();
    if (this.last === undefined || at - this.last.at >= SHARED_MS) {
      const answer = this.ask(), last = { at, answer };
      this.last = last;
      answer.catch(() => {
        if (this.last === last) this.last = undefined;
      });
    }
    return this.last.answer;
  }

  private async ask(): Promise<number> {
    const answer = await this.api.ask({ method: "GET", path: `${pathOf("alarm")}?limit=1` });
    if (answer.status !== 200) throw new StoreSilent(apiRefusal(answer));
    const revision = Number(valueAt(answer.body, "metadata", "resourceVersion"));
    if (Number.isSafeInteger(revision) && revision > 0) return revision;
    throw new StoreSilent(`${answer.credential.server} answers a list without a number for its version`);
  }
}
