/**
 * Containers that need what a table has for a link of the host. Each is an element of map `members`, which no rule looks
 * into, and refers to the counter of the link. So the last one is known.
 */
import { markPairKey } from "../../../ffi/netlink/nftables/set.ts";
import type { Table } from "../../../ffi/netlink/nftables/table.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { GroupPlace, OwnSet } from "./own-tables.ts";
import { ownerKey } from "./owner-comment.ts";

const ON_LINK = "on_";

export function counterOn(link: string): string {
  return `${ON_LINK}${link}`;
}

/** The link that the counter is for; undefined for another counter. */
export function linkOfCounter(counter: string): string | undefined {
  return counter.startsWith(ON_LINK) ? counter.slice(ON_LINK.length) : undefined;
}

export function membersIn(table: Table): OwnSet {
  return { set: { table, name: "members" }, key: markPairKey, holds: "counters" };
}

/** Where the container's element is. */
export function memberIn(table: Table, owner: Owner): GroupPlace {
  return { set: membersIn(table).set, key: ownerKey(owner) };
}
