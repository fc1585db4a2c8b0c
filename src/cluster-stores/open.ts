/** The store that a configuration names. */
import type { StoreConf } from "../cluster/configuration.ts";
import type { ClusterStore } from "../cluster/store.ts";
import { openEtcd } from "./etcd.ts";
import { openKubernetes } from "./kubernetes.ts";
import { openRoster } from "./roster.ts";

/** Asks nobody yet. `node` is whose agent asks; a person's command has none. */
export function openStore(conf: StoreConf, node?: string): ClusterStore {
  switch (conf.kind) {
    case "roster":
      return openRoster(conf.directory);
    case "etcd":
      return openEtcd(conf);
    case "kubernetes":
      return openKubernetes(conf, node);
  }
}
