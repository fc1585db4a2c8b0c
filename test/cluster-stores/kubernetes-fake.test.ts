/** A cluster in Kubernetes: what every store must do, and what the API server does, by a fake one. */
import { afterAll, expect, test } from "bun:test";
import { openKubernetes } from "../../src/cluster-stores/kubernetes.ts";
import { askingOf, installKinds } from "../support/kubernetes/asking.ts";
import { fakeCluster } from "../support/kubernetes/fake-cluster.ts";
import { apiContract } from "./api-contract.ts";
import { storeContract } from "./contract.ts";
import { everyField } from "./every-field.ts";
import { rawKubernetes } from "./kubernetes-raw.ts";

const cluster = await fakeCluster(), ask = askingOf(cluster);
afterAll(() => cluster[Symbol.dispose]());
await installKinds(ask);

apiContract("the fake API server", () => Promise.resolve(cluster));
storeContract(
  "a store in the fake API server",
  () => Promise.resolve({ store: openKubernetes({ kubeconfig: cluster.kubeconfig }), raw: rawKubernetes(ask) }),
);

test("each field of a record is one of its kind", async () => {
  const store = openKubernetes({ kubeconfig: cluster.kubeconfig });
  for (const [key, value] of Object.entries(everyField)) {
    const made = await store.put(key, undefined, value);
    expect(made).toMatchObject({ won: { value } });
    await rawKubernetes(ask).delete(key);
  }
  store.close();
});
