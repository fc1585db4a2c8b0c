/** Writing objects: each is made where none is, or replaced or deleted where it still is what it was. */
import { errorText } from "../../cni/error.ts";
import { valueAt } from "../../cni/json.ts";
import { recordName } from "../../cluster/decoding.ts";
import { type ClusterRecord, ForeignRecord } from "../../cluster/effects.ts";
import type { Stored } from "../../cluster/records.ts";
import type { StoreOutcome } from "../../cluster/store.ts";
import { type ApiAnswer, type KubernetesApi, NotAsked } from "./api.ts";
import { type ApiCaller, askWhoCalls } from "./caller.ts";
import { objectFor, pathOf, recordOfObject, requireReadable } from "./objects.ts";
import { type FoundObject, readObject } from "./reading.ts";
import { apiRefusal, isKindUnknown, OTHER_KINDS } from "./refusals.ts";

/** Newer servers refuse a field that they do not know; older ones drop it, and what they answer lacks it. */
const STRICT = "?fieldValidation=Strict";

export class ObjectWriter {
  private caller?: { known: ApiCaller | undefined };

  constructor(private readonly api: KubernetesApi, private readonly node: string | undefined) {}

  async put(
    key: string,
    was: Stored<ClusterRecord> | undefined,
    value: ClusterRecord | undefined,
  ): Promise<StoreOutcome> {
    try {
      if (value !== undefined) requireReadable(key, value);
    } catch (error) {
      return { refused: `${key} is not written: ${errorText(error)}` };
    }
    try {
      const another = await this.anotherNode();
      if (another !== undefined) return { refused: another };
      if (was !== undefined) return await this.change(key, was, value);
      return value === undefined ? "lost" : await this.create(key, value);
    } catch (error) {
      return error instanceof NotAsked ? { refused: errorText(error) } : { unknown: errorText(error) };
    }
  }

  /** Why this may not be the node, where the server says whose the credential is. */
  private async anotherNode(): Promise<string | undefined> {
    if (this.node === undefined) return undefined;
    this.caller ??= { known: await askWhoCalls(this.api) };
    const { known } = this.caller;
    if (known?.node === undefined || known.node === this.node) return undefined;
    return `the API server takes this for node ${known.node} (${known.user}), and it is configured as ${this.node}: ` +
      'correct "node" in the configuration, or the credential';
  }

  private async create(key: string, value: ClusterRecord): Promise<StoreOutcome> {
    const path = `${pathOf(recordName(key)!.kind)}${STRICT}`;
    return this.outcomeOf(key, value, await this.api.ask({ method: "POST", path, body: objectFor(key, value) }));
  }

  /**
   * A store that was restored gives its versions out again: so the object is read first, and compared as a whole. From then on
   * the server compares the version.
   */
  private async change(
    key: string,
    was: Stored<ClusterRecord>,
    value: ClusterRecord | undefined,
  ): Promise<StoreOutcome> {
    const found = await this.foundAs(was);
    if (found === undefined) return "lost";
    if (value === undefined) return await this.remove(key, found);
    const { kind, name } = recordName(key)!, path = `${pathOf(kind, name)}${STRICT}`;
    const body = objectFor(key, value, found.metadata);
    return this.outcomeOf(key, value, await this.api.ask({ method: "PUT", path, body }));
  }

  /** Undefined where it is another by now, or no record. */
  private async foundAs(was: Stored<ClusterRecord>): Promise<FoundObject | undefined> {
    try {
      const found = await readObject(this.api, was.key);
      return Bun.deepEquals(found?.record, was) ? found : undefined;
    } catch (error) {
      if (error instanceof ForeignRecord) return undefined;
      throw error;
    }
  }

  /** With a finalizer it only begins to go. */
  private async remove(key: string, { metadata: { uid, resourceVersion } }: FoundObject): Promise<StoreOutcome> {
    const { kind, name } = recordName(key)!;
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } };
    const answer = await this.api.ask({ method: "DELETE", path: pathOf(kind, name), body });
    if (answer.status !== 200) return this.failed(key, answer);
    const finalizers = valueAt(answer.body, "metadata", "finalizers");
    return Array.isArray(finalizers) && finalizers.length > 0
      ? { unknown: `${key} is being deleted, and waits for its finalizers: ${finalizers.join(", ")}` }
      : { won: undefined };
  }

  private outcomeOf(key: string, value: ClusterRecord, answer: ApiAnswer): StoreOutcome {
    if (answer.status !== 200 && answer.status !== 201) return this.failed(key, answer);
    const won = recordOfObject(recordName(key)!.kind, answer.body);
    if (Bun.deepEquals(won.value, value)) return { won };
    return { unknown: `${key} is not in ${answer.credential.server} as it was sent: ${OTHER_KINDS}` };
  }

  private failed(key: string, answer: ApiAnswer): StoreOutcome {
    const { status } = answer;
    if (status === 409 || (status === 404 && !isKindUnknown(answer))) return "lost";
    const why = `${key}: ${apiRefusal(answer, this.caller?.known?.user)}`;
    return status >= 500 || status === 408 ? { unknown: why } : { refused: why };
  }
}
