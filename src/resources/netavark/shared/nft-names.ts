/** The names in the nftables table that netavark and we share. Other tools, and netavark itself, look for them. */
import type { Chain, Table } from "../../../ffi/netlink/nftables/table.ts";
import type { NftSet } from "../../../ffi/netlink/nftables/set.ts";
import { NFPROTO_INET } from "../../../ffi/netlink/uapi/nf-tables.ts";

export const table: Table = { family: NFPROTO_INET, name: "netavark" };

export const DNAT = "NETAVARK-HOSTPORT-DNAT", SETMARK = "NETAVARK-HOSTPORT-SETMARK";
export const ISOLATION_1 = "NETAVARK-ISOLATION-1", ISOLATION_2 = "NETAVARK-ISOLATION-2";
export const ISOLATION_3 = "NETAVARK-ISOLATION-3";

/** The rules of one subnet of a network: `nv_2f259bab_10_88_0_0_nm16`. */
export function subnetChain(networkId: string, subnet: string): string {
  const text = subnet.replaceAll(".", "_").replaceAll(":", "-").replace("/", "_nm");
  return `nv_${networkId.slice(0, 8)}_${text}`;
}

/** The rules for published ports of the containers in the subnet. */
export function portsChain(networkId: string, subnet: string): string {
  return `${subnetChain(networkId, subnet)}_dnat`;
}

/** The published ports of the containers in the subnet: `tcp . 8080 : 10.88.0.5 . 80`. */
export function portsMap(networkId: string, subnet: string): NftSet {
  return { table, name: `${subnetChain(networkId, subnet)}_ports` };
}

/** Which of the names of sets in the table are maps of ports. */
export function portsMapsAmong(names: readonly string[]): NftSet[] {
  return names.filter((name) => name.startsWith("nv_") && name.endsWith("_ports")).map((name) => ({ table, name }));
}

/** Undefined for a chain that has no ports. */
export function portsChainFamily(name: string): 4 | 6 | undefined {
  if (!/^nv_.*_dnat$/.test(name)) return undefined;
  return name.includes("-") ? 6 : 4;
}

export function chain(name: string): Chain {
  return { table, name };
}
