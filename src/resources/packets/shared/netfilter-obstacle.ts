/**
 * Why rules cannot be made on this host, for STATUS; undefined when they can. Found without making anything: the kernel
 * checks what ADD would send, or is asked for what that needs.
 */
import type { Host } from "../../../contract/host.ts";
import { EEXIST } from "../../../ffi/errno.ts";
import { missingExtensions } from "../../../interop/iptables/extensions.ts";
import type { IptablesRule } from "../../../interop/iptables/rule.ts";
import { isLegacyHost } from "../../../interop/iptables/which-iptables.ts";
import { hasNfTables, rehearse } from "../../../ffi/netlink/nftables/batch.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { type Table, tableUse } from "../../../ffi/netlink/nftables/table.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { netfilterOf } from "./netfilter-socket.ts";

const NO_NF_TABLES = "this kernel does not have nf_tables";

/** `plan` returns what ADD would send for the first container. */
export function obstacleToNftables(
  host: Host,
  table: Table,
  plan: (socket: NetlinkSocket) => NftMessage[],
): string | undefined {
  const socket = nfTablesOf(host);
  if (socket === undefined) return NO_NF_TABLES;
  // The kernel supports what is already there.
  if (tableUse(socket, table) !== undefined) return undefined;
  try {
    rehearse(socket, plan(socket));
  } catch (error) {
    // EEXIST: another process has just made the table.
    if (isNetlinkError(error, EEXIST)) return undefined;
    if (!isNetlinkError(error)) throw error;
    return `this kernel refuses what it takes: ${error.message}`;
  }
  return undefined;
}

/** What the older kernel tables lack shows only when they are written to. */
export function obstacleToIptables(host: Host, rules: readonly IptablesRule[]): string | undefined {
  if (isLegacyHost()) {
    return (require(
      "../../../interop/iptables/legacy-table.ts",
    ) as typeof import("../../../interop/iptables/legacy-table.ts"))
      .whyNoTools(
        4,
      );
  }
  const socket = nfTablesOf(host);
  if (socket === undefined) return NO_NF_TABLES;
  const missing = missingExtensions(socket, rules);
  return missing.length === 0 ? undefined : `this kernel lacks ${missing.join(" and ")}`;
}

function nfTablesOf(host: Host): NetlinkSocket | undefined {
  const socket = netfilterOf(host);
  return socket !== undefined && hasNfTables(socket) ? socket : undefined;
}
