/**
 * Nothing is forwarded from or to the bridge of an internal network, whatever the forwarding switches of the host say, and in
 * both families whatever subnets the network has. The sysctl of the bridge alone would not do: the switch of the host resets
 * it, and the kernel does not ask it for IPv6. So rules drop such packets, in a table of our own (owned-table.ts):
 *
 *     table inet patchbay_internal {
 *       counter dropped { }
 *       map bridges { type iface_index : counter; elements = { "podman1" comment "podman1" : "dropped" } }
 *       set within { type iface_index . iface_index; elements = { "podman1" . "podman1" comment "podman1" } }
 *       chain forward {
 *         type filter hook forward priority raw; policy accept;
 *         iif . oif @within accept
 *         counter name iif map @bridges drop
 *         counter name oif map @bridges drop
 *         counter name sdif map @bridges drop
 *       }
 *     }
 *
 * A drop is final, whatever other tables accept before or after. `within` is for packets that br_netfilter shows to rules
 * though they stay on the bridge. `sdif` is the bridge where it belongs to a VRF. Bridges are known by their index, so an
 * element that is left has no effect on a later bridge of that name. It would close a later link of that index, so every setup
 * of an internal network, and every teardown that leaves a bridge without ports, looks for elements that are left.
 */
import type { Host } from "../../../contract/host.ts";
import { accept, drop } from "../../../ffi/netlink/nftables/action.ts";
import { commitUnchanged, hasNfTables } from "../../../ffi/netlink/nftables/batch.ts";
import { countIn, hostOrder, isIn } from "../../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  inputAndOutputIndex,
  inputIndex,
  memberIndex,
  outputIndex,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import {
  type Element,
  getElement,
  linkIndexesKey,
  linkIndexKey,
  listElements,
  type NftSet,
} from "../../../ffi/netlink/nftables/set.ts";
import { type Chain, nameOfTable } from "../../../ffi/netlink/nftables/table.ts";
import { hasPorts } from "../../../ffi/netlink/route/bridge.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NF_INET_FORWARD } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { tryWriteSysctl } from "../../../ffi/sysctl.ts";
import { lacksNfTables, netfilterOf } from "./netfilter-socket.ts";
import { ownTables } from "./own-tables.ts";
import { OwnedTable } from "./owned-table.ts";

const table = ownTables["podman-bridge"];
const forward: Chain = { table, name: "forward" };
const bridges: NftSet = { table, name: "bridges" };
const within: NftSet = { table, name: "within" };
const DROPPED = "dropped";
/** Before what others do with packets that pass. */
const RAW = -300;

const owned = new OwnedTable({
  table,
  chains: [{
    chain: forward,
    hook: { type: "filter", hook: NF_INET_FORWARD, priority: RAW },
    rules: [
      [...inputAndOutputIndex, isIn(within.name), accept],
      [inputIndex, countIn(bridges.name), drop],
      [outputIndex, countIn(bridges.name), drop],
      [memberIndex, countIn(bridges.name), drop],
    ],
    replaces: () => true,
  }],
  sets: [
    { set: bridges, key: linkIndexKey, holds: "counters" },
    { set: within, key: linkIndexesKey, holds: "keys" },
  ],
  counter: DROPPED,
});

function placesOf({ index, name }: Link): { set: NftSet; element: Element }[] {
  const key = hostOrder(index);
  return [
    { set: bridges, element: { key, comment: name, counter: DROPPED } },
    { set: within, element: { key: new Uint8Array([...key, ...key]), comment: name } },
  ];
}

function indexOf({ key }: Element): number {
  return new DataView(key.buffer, key.byteOffset).getUint32(0, true);
}

function planClosing(socket: NetlinkSocket, link: Link): NftMessage[] {
  const isNew = owned.counterUse(socket, DROPPED) === undefined;
  return [
    ...isNew ? owned.frame() : owned.mend(socket),
    ...placesOf(link).flatMap(({ set, element }) => owned.put(socket, set, element)),
  ];
}

/** Throws where no bridge can be closed. */
export function requireNfTables(host: Host): void {
  const netfilter = netfilterOf(host);
  if (netfilter === undefined || !hasNfTables(netfilter)) throw lacksNfTables("an internal network needs");
}

export function closeBridge(link: Link, host: Host): void {
  requireNfTables(host);
  commitUnchanged(host.netfilter, () => planClosing(host.netfilter, link));
  openLeftBridges(link.name, host);
}

export function isClosed({ index }: Link, host: Host): boolean {
  const netfilter = netfilterOf(host);
  return netfilter !== undefined && getElement(netfilter, bridges, hostOrder(index)) !== undefined;
}

/** One line for each way in which the bridge is open. */
export function openings(link: Link, host: Host): string[] {
  const netfilter = netfilterOf(host);
  const lacking = placesOf(link).filter(({ set, element: { key } }) =>
    netfilter === undefined || getElement(netfilter, set, key) === undefined
  );
  return [
    ...lacking.map(({ set }) => `${link.name} is not in ${set.name} of table ${nameOfTable(table)}`),
    ...netfilter === undefined ? [] : owned.verifyRules(netfilter),
  ];
}

export function openBridge({ index }: Link, host: Host): void {
  open(host, (element) => indexOf(element) === index);
}

/** The bridges that are gone, and those that were closed under this name, have another one now, and have no port. */
export function openLeftBridges(name: string, host: Host): void {
  open(host, (element) => {
    const link = linkOf(element, host);
    return link === undefined || (element.comment === name && link.name !== name && !hasPorts(host.route, link));
  });
}

/** Undefined also for a later link with the index of the bridge. */
function linkOf(element: Element, { route }: Host): Link | undefined {
  const link = getLink(route, indexOf(element));
  return link?.kind === "bridge" ? link : undefined;
}

function open(host: Host, isMeant: (element: Element) => boolean): void {
  const netfilter = netfilterOf(host);
  if (netfilter === undefined) return;
  commitUnchanged(netfilter, () => {
    const meant = owned.findWhere(netfilter, [bridges, within], () => true).filter(isMeant);
    return meant.length === 0 ? [] : owned.planRemoval(netfilter, meant);
  });
}

/** After the host's switch was set, which sets every link's own. */
export function keepForwardingOff(host: Host): void {
  const netfilter = netfilterOf(host);
  if (netfilter === undefined) return;
  for (const element of listElements(netfilter, bridges)) {
    const link = linkOf(element, host);
    if (link !== undefined) { for (const key of forwardingOf(link.name)) tryWriteSysctl(key, "0"); }
  }
}

export function forwardingOf(link: string): string[] {
  return [`net/ipv4/conf/${link}/forwarding`, `net/ipv6/conf/${link}/forwarding`];
}

export const internalTable = nameOfTable(table);
