/** The store that a configuration names. */
import type { StoreConf } from "../cluster/configuration.ts";
import type { ClusterStore } from "../cluster/store.ts";
import { openEtcd } from "./etcd.ts";
import { openRoster } from "./roster.ts";

/** Asks nobody yet. */
export function openStore(conf: StoreConf): ClusterStore {
  switch (conf.kind) {
    case "roster":
      return openRoster(conf.directory);
    case "etcd":
      return openEtcd(conf);
    case "kubernetes":
      throw new Error(`${conf.kind}: not yet`);
  }
}
