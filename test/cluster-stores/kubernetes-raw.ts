/** The records of a cluster in Kubernetes as other programs and persons see them. */
import { API_GROUP, API_VERSION, pathOf, POOL_LABEL } from "../../src/cluster-stores/kubernetes/objects.ts";
import { recordName } from "../../src/cluster/decoding.ts";
import type { Asking } from "../support/kubernetes/asking.ts";
import type { RawStore } from "./contract.ts";

export function rawKubernetes(ask: Asking): RawStore {
  const foreign = (spec: object) => async (key: string) => {
    const { name, pool, index } = recordName(key)!;
    await made(ask, {
      apiVersion: `${API_GROUP}/${API_VERSION}`,
      kind: "AddressBlock",
      metadata: { name, labels: { [POOL_LABEL]: pool } },
      spec: { pool, poolUID: "u", index, ...spec },
    });
  };
  return {
    foreign: {
      "another block's index": foreign({ index: 77 }),
      "an owner without claim": foreign({ node: "n1", generation: 1 }),
      "an owner without name": foreign({ generation: 1, claim: "c" }),
    },
    async delete(key) {
      const { kind, name } = recordName(key)!, path = pathOf(kind, name), { status, body } = await ask("GET", path);
      if (status === 404) return;
      await ask("PUT", path, { ...body, metadata: { ...body.metadata, finalizers: [] } });
      await ask("DELETE", path);
    },
  };
}

async function made(ask: Asking, object: object): Promise<void> {
  const { status, text } = await ask("POST", pathOf("block"), object);
  if (status !== 201) throw new Error(text);
}
