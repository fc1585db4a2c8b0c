/** A person says that this machine is the node from now on: src/services/node/operator/replacement.ts has the steps before. */
import { MOST_ATTEMPTS, putRecord, readStored, type Steps, StoreSilent } from "./effects.ts";
import type { Self } from "./node.ts";
import { nodeKey, type NodeRecord } from "./records.ts";

export interface Becoming {
  /** As it is without it. */
  state?: NodeRecord["state"];
  /** What the record has to be until then: another state is the objection of who lives. */
  after?: NodeRecord["state"];
}

export function* becomeNode(
  { node, machine, boot }: Self,
  { state, after }: Becoming,
): Steps<"done" | "lives" | "refused"> {
  const key = nodeKey(node);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const found = yield* readStored<NodeRecord>(key);
    if (found === undefined) return "lives";
    const { isContested, ...value } = found.value, wanted = { ...value, machine, boot, state: state ?? value.state };
    const isDone = !isContested && value.machine === machine && value.boot === boot && value.state === wanted.state;
    if (isDone) return "done";
    if (after !== undefined && value.state !== after) return "lives";
    const written = yield* putRecord<NodeRecord>(key, found, wanted);
    if (typeof written === "object") return "done";
    if (written === "refused") return written;
  }
  throw new StoreSilent(`${key} changes again and again`);
}
