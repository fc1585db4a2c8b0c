/**
 * A cluster in the API of Kubernetes, 1.20 or newer: each record is an object of a kind of its own. What decides is asked
 * without a version, so that the server asks etcd; lists are what it remembers.
 */
import type { KubernetesConf } from "../cluster/configuration.ts";
import type { ClusterStore } from "../cluster/store.ts";
import { KubernetesApi } from "./kubernetes/api.ts";
import { Credentials } from "./kubernetes/credentials.ts";
import { ObjectLists } from "./kubernetes/lists.ts";
import { readObject } from "./kubernetes/reading.ts";
import { watchObject } from "./kubernetes/watch.ts";
import { ObjectWriter } from "./kubernetes/writing.ts";

/** Asks nobody yet. `node` is whose agent this is: with another node's credential nothing is written. */
export function openKubernetes(conf: KubernetesConf, node?: string): ClusterStore {
  const { kubeconfig, context } = conf, api = new KubernetesApi(new Credentials(conf));
  const writer = new ObjectWriter(api, node), lists = new ObjectLists(api);
  const from = kubeconfig === undefined ? "as this pod" : [kubeconfig, context].filter(Boolean).join(", ");
  return {
    name: `the API of Kubernetes (${from})`,
    isWritable: true,
    read: async (key) => (await readObject(api, key))?.record,
    list: (kind, pool) => lists.list(kind, pool),
    async put(key, was, value) {
      const outcome = await writer.put(key, was, value);
      lists.noteWritten(key, outcome);
      return outcome;
    },
    watch: (key, changed, signal) => watchObject(api, key, changed, signal),
    close: () => api.close(),
  };
}
