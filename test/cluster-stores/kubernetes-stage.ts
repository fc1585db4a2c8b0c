/** A fake API server for each test of a file, and stores in it. */
import { afterEach, beforeEach } from "bun:test";
import { openKubernetes } from "../../src/cluster-stores/kubernetes.ts";
import { nodeKey, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import type { ClusterStore } from "../../src/cluster/store.ts";
import { askingOf, installKinds } from "../support/kubernetes/asking.ts";
import { type FakeCluster, fakeCluster, kubeconfigOf } from "../support/kubernetes/fake-cluster.ts";
import type { FakeOptions } from "../support/kubernetes/fake-server.ts";

export const key = nodeKey("n1"), node: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };

export class FakeStage {
  private clusters: FakeCluster[] = [];
  private stores: ClusterStore[] = [];

  constructor() {
    beforeEach(async () => void await this.newCluster());
    afterEach(() => {
      this.stores.forEach((store) => store.close());
      this.clusters.forEach((cluster) => cluster[Symbol.dispose]());
      this.stores = [], this.clusters = [];
    });
  }

  get cluster(): FakeCluster {
    return this.clusters.at(-1)!;
  }

  get requests(): string[] {
    return this.cluster.server.requests;
  }

  /** In the place of the one that the test has. */
  async newCluster(options: Partial<FakeOptions> = {}): Promise<void> {
    this.clusters.push(await fakeCluster(options));
    await installKinds(askingOf(this.cluster));
    this.requests.length = 0;
  }

  open(kubeconfig = this.cluster.kubeconfig, name?: string): ClusterStore {
    const store = openKubernetes({ kubeconfig }, name);
    this.stores.push(store);
    return store;
  }

  /** A kubeconfig for this server. */
  kubeconfig(name: string, user: object, more: object = {}): string {
    const { certificates, url, caFile } = this.cluster;
    return certificates.file(name, kubeconfigOf(url, { "certificate-authority": caFile, ...more }, user));
  }
}

export async function made(store: ClusterStore): Promise<Stored<NodeRecord>> {
  return (await store.put(key, undefined, node) as { won: Stored<NodeRecord> }).won;
}

export function saidBy(asked: Promise<unknown>): Promise<string> {
  return asked.then(() => "nothing", ({ message }: Error) => message);
}

export function isMethod(wanted: string): (request: { method: string }) => boolean {
  return ({ method }) => method === wanted;
}
