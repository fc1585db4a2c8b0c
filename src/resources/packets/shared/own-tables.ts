/**
 * Every nftables table of ours in the kernel, by the kind of resource that writes it, and what a table consists of. Each
 * is made with its first element and deleted with its last. Rules that other programs must see stand in iptables' own tables instead (src/iptables).
 */
import type { Table } from "../../../ffi/netlink/nftables/table.ts";
import { NFPROTO_BRIDGE, NFPROTO_INET, NFPROTO_IPV4 } from "../../../ffi/netlink/uapi/nf-tables.ts";

export interface OwnTable extends Table {
  /** Which plugins write it, and when. */
  madeBy: string;
  /** nft(8) shows it at the table. */
  comment: string;
}

export const ownTables = {
  "masquerade": {
    family: NFPROTO_INET,
    name: "patchbay_masquerade",
    madeBy: "bridge and ptp, for ipMasq with the backend nftables",
    comment: "Patchbay: container addresses to masquerade, a map for each subnet",
  },
  "port-mappings": {
    family: NFPROTO_INET,
    name: "patchbay_portmap",
    madeBy: "portmap, with the backend nftables",
    comment: "Patchbay: ports of the host that lead to containers",
  },
  "localhost-access": {
    family: NFPROTO_IPV4,
    name: "patchbay_localhost",
    madeBy: "portmap, and the networks of podman, for ports that 127.0.0.1 of the host reaches",
    comment: "Patchbay: links over which 127.0.0.1 of the host reaches containers, and nobody reaches it",
  },
  "firewall": {
    family: NFPROTO_INET,
    name: "patchbay_firewall",
    madeBy: "firewall, with the backend nftables",
    comment: "Patchbay: container addresses that may be forwarded, bridges that are kept apart",
  },
  "mac-spoof-check": {
    family: NFPROTO_BRIDGE,
    name: "patchbay_macspoofchk",
    madeBy: "bridge, for macspoofchk",
    comment: "Patchbay: containers whose source MAC is checked",
  },
} as const satisfies Record<string, OwnTable>;
