/** Masquerading: what a container sends to outside its subnet gets the host's address (`ipMasq` of bridge and ptp). */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { nameOfTable } from "../../../ffi/netlink/nftables/table.ts";
import { Backends } from "../shared/backend.ts";
import { ownTables } from "../shared/own-tables.ts";
import type { MasqueradeSpec } from "./spec.ts";

const backends = new Backends<MasqueradeSpec>("ipMasq needs", {
  iptables: () => (require("./iptables.ts") as typeof import("./iptables.ts")).backend,
  nftables: () => (require("./nftables.ts") as typeof import("./nftables.ts")).backend,
}, () => (require("./reference-nft.ts") as typeof import("./reference-nft.ts")).backend);

export const masqueradeKind: ResourceKind<MasqueradeSpec> = {
  kind: "masquerade",
  apply: (spec, host) => backends.apply(spec, host, () => backends.verbs.remove(spec, host)),
  ...backends.verbs,
  ownTable: ({ backend }) => backend === "nftables" ? nameOfTable(ownTables.masquerade) : undefined,
  describe: ({ backend, addresses }) => `masquerade of ${addresses.join(" and ")} by ${backend}`,
};

export const masquerade = resource(masqueradeKind);
