/** A person says that this machine is the node from now on: src/services/node/operator/replacement.ts has the steps before. */
import { changeRecord } from "./effects.ts";
import type { Self } from "./node.ts";
import { nodeKey, type NodeRecord } from "./records.ts";

export interface Becoming {
  /** As it is without it. */
  state?: NodeRecord["state"];
  /** What the record has to be until then: another state is the objection of who lives. */
  after?: NodeRecord["state"];
}

export function becomeNode({ node, machine, boot }: Self, { state, after }: Becoming) {
  return changeRecord<NodeRecord, "lives">(nodeKey(node), (found) => {
    if (found === undefined) return "lives";
    const { isContested, ...value } = found, wanted = { ...value, machine, boot, state: state ?? value.state };
    const isDone = !isContested && value.machine === machine && value.boot === boot && value.state === wanted.state;
    if (isDone) return found;
    return after !== undefined && value.state !== after ? "lives" : wanted;
  });
}
