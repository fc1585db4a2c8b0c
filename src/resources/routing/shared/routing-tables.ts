/**
 * Choosing a free routing table in a namespace. A table is in use if a rule refers to it, it has routes, or it is a VRF's.
 * Callers hold the lock of `Container.alone`.
 */
import { type Link, listLinks } from "../../../ffi/netlink/route/link.ts";
import { vrf } from "../../../ffi/netlink/route/link-kinds.ts";
import type { RouteImage } from "../../../ffi/netlink/route/route-image.ts";
import type { RoutingRule } from "../../../ffi/netlink/route/rule.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN } from "../../../ffi/netlink/uapi/rtnetlink.ts";

export function tablesInUse(
  socket: NetlinkSocket,
  rules: readonly RoutingRule[],
  routes: readonly RouteImage[],
): Set<number> {
  const used = new Set([RT_TABLE_DEFAULT, RT_TABLE_MAIN, RT_TABLE_LOCAL]);
  for (const { table } of rules) used.add(table);
  for (const { route } of routes) used.add(route.table);
  for (const link of listLinks(socket)) used.add(vrfTable(link) ?? RT_TABLE_MAIN);
  return used;
}

/** The table of a VRF. Undefined for any other link. */
export function vrfTable({ kind, kindData }: Link): number | undefined {
  return kind === "vrf" && kindData !== undefined ? vrf.settings(kindData).table : undefined;
}

/** Returns the first free table from `lowest` on, and adds it to `used`. */
export function takeFreeTable(used: Set<number>, lowest: number): number {
  let table = lowest;
  while (used.has(table)) table++;
  used.add(table);
  return table;
}
