/**
 * The tables of iptables on this host, in nf_tables or in the older kernel tables.
 *
 *     changeTable(host, "nat", [4, 6], (table) => {
 *       if (table.hasChain(chain)) return;
 *       table.createChain(chain);
 *       table.append(chain, rule);
 *       table.append("POSTROUTING", jump);
 *     });
 *
 * The plan runs once for each family: it reads the table and says what to change. All changes take effect at once, and
 * only if the table has not changed since it was read; otherwise the plan runs again.
 */
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import type { Family, TableName } from "./rule.ts";
import type { IptablesTable, TablePlan } from "./table.ts";
import { hasLegacyTable, isLegacyHost } from "./which-iptables.ts";

/** What has a netfilter socket when it is asked for one. */
interface NetfilterHost {
  readonly netfilter: NetlinkSocket;
}

// Loaded when used: a process needs one of them.
const nft = () => require("./nft-table.ts") as typeof import("./nft-table.ts");
const legacy = () => require("./legacy-table.ts") as typeof import("./legacy-table.ts");

/**
 * Changes the table where the host's iptables keeps it. Returns false when that is nf_tables and the kernel has none. The
 * older tables are changed one family after the other: the first stays changed when the second fails.
 */
export function changeTable(
  host: NetfilterHost,
  name: TableName,
  families: readonly Family[],
  plan: TablePlan,
): boolean {
  if (!isLegacyHost()) return nft().changeTable(host.netfilter, name, families, plan);
  for (const family of families) legacy().changeTable(name, family, plan);
  return true;
}

/**
 * For removals, which must also find what was written while the host used the other form. Changes the table in nf_tables,
 * then in the older tables, if they are in use and either `thorough` is set or nothing changed in nf_tables. `socket` is
 * undefined where the kernel has no netfilter.
 */
export function changeEveryTable(
  socket: NetlinkSocket | undefined,
  name: TableName,
  families: readonly Family[],
  thorough: boolean,
  plan: TablePlan,
): void {
  let changed = false, failure: unknown;
  try {
    if (socket !== undefined) nft().changeTable(socket, name, families, plan, () => changed = true);
  } catch (error) {
    failure = error;
  }
  if (thorough || !changed) {
    for (const family of families) if (hasLegacyTable(family, name)) legacy().changeTable(name, family, plan);
  }
  if (failure !== undefined) throw failure;
}

/** The table, where the host's iptables keeps it. */
export function readTable(host: NetfilterHost, name: TableName, family: Family): IptablesTable {
  return isLegacyHost() ? legacy().readTable(name, family) : nft().readTable(host.netfilter, name, family);
}

/** Like `readTable`; undefined where that would fail for want of netfilter, or load the modules of the older tables. */
export function existingTable(
  socket: NetlinkSocket | undefined,
  name: TableName,
  family: Family,
): IptablesTable | undefined {
  if (isLegacyHost()) return hasLegacyTable(family, name) ? legacy().readTable(name, family) : undefined;
  return socket && nft().readTable(socket, name, family);
}
