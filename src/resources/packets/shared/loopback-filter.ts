/**
 * A filter of tc(8) on a link of the host: what comes in to or from 127.0.0.0/8 is dropped. It stands where packets come in,
 * before anything else sees them, and flushing the rules of the firewall does not take it.
 *
 *     qdisc clsact ffff: dev br0
 *     filter protocol all pref 1 bpf handle 0x7f000001 direct-action bytecode '17,…'
 *
 * A filter that redirects packets before this filter hides them from it. So it has the first priority, and the newest of
 * several programs of the kind bpf comes first; `redirect` has the second. Where another kind of filter has the first priority
 * already, this one is not made.
 *
 * The kernel has one such queueing discipline a link, for all who filter there. The handle of the filter says whether it
 * goes with the filter, unless others have come to use it.
 */
import { EEXIST, EINVAL, ENODEV, ENOENT, EOPNOTSUPP } from "../../../ffi/errno.ts";
import { bpfProgram, readBpfProgram } from "../../../ffi/netlink/tc/bpf.ts";
import {
  addFilter,
  addQdiscAndFilter,
  delFilter,
  delQdisc,
  type Filter,
  getQdisc,
  listFilters,
} from "../../../ffi/netlink/tc/queueing.ts";
import { tcHandle } from "../../../ffi/netlink/tc/tc-object.ts";
import { readU32 } from "../../../ffi/netlink/tc/u32.ts";
import {
  ETH_P_8021AD,
  ETH_P_8021Q,
  ETH_P_ALL,
  ETH_P_IP,
  TC_ACT_SHOT,
  TC_ACT_UNSPEC,
  TC_H_FOR_EGRESS,
  TC_H_FOR_INGRESS,
  TC_H_INGRESS,
} from "../../../ffi/netlink/uapi/traffic-control.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { assembled, type Instruction } from "../../../ffi/packet-program.ts";
import { isSameBytes } from "../../../net/address.ts";

const LOAD_4 = 0x20, LOAD_2 = 0x28, LOAD_1 = 0x30, AND = 0x54, IF_EQUAL = 0x15, RETURN = 0x06;
/** What the kernel knows of the packet (linux/filter.h), and where the header behind that of the link begins. */
const PROTOCOL = 0xfffff000, MARK = 0xfffff000 + 20, VLAN_TAG = 0xfffff000 + 44, NETWORK_HEADER = 0xfff00000;
const SOURCE = NETWORK_HEADER + 12, DESTINATION = NETWORK_HEADER + 16;
const VLAN_ID = 0xfff, LOOPBACK = 127;

/**
 * The mark of packets whose destination has been translated to 127.0.0.0/8, which have to pass. Where br_netfilter passes
 * what comes through a bridge to the rules, they are translated before this filter. No container can set it: packets lose
 * their marks between network namespaces.
 */
export const TRANSLATED_MARK = 0x7f000001;

/** Code, value, and the index of the next instruction if a comparison holds and if it does not. */
type Step = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number];

/**
 * The kernel takes the first tag of a VLAN off before it asks, and further ones with the number 0 afterwards, so two tags
 * with that number would hide the packet. Nobody needs two of them.
 */
const OTHERS = 6, TAGGED = 8, MARKED = 14, PASS = 16, DROP = 17;
const steps: readonly Step[] = [
  [LOAD_4, PROTOCOL],
  [IF_EQUAL, ETH_P_IP, 2, OTHERS],
  [LOAD_1, DESTINATION],
  [IF_EQUAL, LOOPBACK, MARKED, 4],
  [LOAD_1, SOURCE],
  [IF_EQUAL, LOOPBACK, DROP, PASS],
  [IF_EQUAL, ETH_P_8021Q, TAGGED, 7],
  [IF_EQUAL, ETH_P_8021AD, TAGGED, PASS],
  [LOAD_4, VLAN_TAG],
  [AND, VLAN_ID],
  [IF_EQUAL, 0, 11, PASS],
  [LOAD_2, NETWORK_HEADER],
  [AND, VLAN_ID],
  [IF_EQUAL, 0, DROP, PASS],
  [LOAD_4, MARK],
  [IF_EQUAL, TRANSLATED_MARK, PASS, DROP],
  [RETURN, TC_ACT_UNSPEC],
  [RETURN, TC_ACT_SHOT],
];

const program = assembled(steps.map(([code, value, ifTrue = 0, ifFalse = 0], index): Instruction => {
  const next = index + 1;
  return code === IF_EQUAL ? [code, ifTrue - next, ifFalse - next, value] : [code, 0, 0, value];
}));

const INGRESS = { parent: TC_H_INGRESS, handle: tcHandle(0xffff) };
const PLACE = { parent: TC_H_FOR_INGRESS, priority: 1, protocol: ETH_P_ALL };
/** Whether the queueing discipline goes with the filter. */
const ALONE = 0x7f000001, GUEST = 0x7f000002;

type Named = { index: number; name: string };

/**
 * Makes the filter unless it is there. Returns why it cannot be made, or undefined. `mayBeLeft`: whether a call that was cut
 * off may have left a queueing discipline without filters.
 */
export function filterLoopback(socket: NetlinkSocket, name: string, mayBeLeft: () => boolean): string | undefined {
  const index = linkIndex(socket, name);
  if (index === undefined) return `there is no link ${name}`;
  const link = { index, name };
  let handle = ALONE;
  try {
    if (!tookNewQdisc(socket, link)) {
      const filters = listFilters(socket, link, PLACE.parent);
      if (filters.some(isIntact)) return undefined;
      const others = filters.filter((filter) => !isOwn(filter));
      const isOurs = others.length > 0 ? others.every(isRedirect) : filters.length === 0 && mayBeLeft();
      handle = filters.find(isFilter)?.handle ?? (isOurs ? ALONE : GUEST);
      removeOwn(socket, link, filters);
    }
    addFilter(socket, { link, ...PLACE, handle }, bpfProgram(program));
    return undefined;
  } catch (error) {
    // EEXIST: it came with the queueing discipline, or another call has just made it.
    if (isNetlinkError(error, EEXIST)) return undefined;
    if (!isNetlinkError(error, ENOENT, EINVAL, ENODEV, EOPNOTSUPP)) throw error;
    if (handle === ALONE) removeIfUnused(socket, link);
    return error.message;
  }
}

/** Whether the filter is there as it was made. */
export function filtersLoopback(socket: NetlinkSocket, name: string): boolean {
  const index = linkIndex(socket, name);
  return index !== undefined && listFilters(socket, { index, name }, PLACE.parent).some(isIntact);
}

/**
 * Removes the filter, and the queueing discipline that only it used. One without any filter does nothing: a call that was
 * cut off may have left it.
 */
export function stopFilteringLoopback(socket: NetlinkSocket, name: string): void {
  const index = linkIndex(socket, name);
  if (index === undefined) return;
  const link = { index, name }, filters = listFilters(socket, link, PLACE.parent);
  const has = (wanted: number) => filters.some(({ handle }) => handle === wanted);
  // With both, one of two calls at once has made the queueing discipline, and the other took it for another's.
  const isGuest = has(GUEST) && !has(ALONE);
  if (!isGuest && removeIfUnused(socket, link, filters)) return;
  removeOwn(socket, link, filters);
}

/** Whether only this filter uses the queueing discipline of the link. */
export function isForLoopbackFilter(socket: NetlinkSocket, link: Named): boolean {
  const filters = listFilters(socket, link, PLACE.parent);
  return filters.some(({ handle }) => handle === ALONE) && filters.every(isOwn);
}

/**
 * The filter comes with it: who finds a queueing discipline without filters takes it for another's. Where there is one, that
 * filter would get into it, and say that it goes with it.
 */
function tookNewQdisc(socket: NetlinkSocket, link: Named): boolean {
  if (getQdisc(socket, link, TC_H_INGRESS) !== undefined) return false;
  try {
    const filter = { link, ...PLACE, handle: ALONE };
    addQdiscAndFilter(socket, [{ link, ...INGRESS }, { name: "clsact" }], [filter, bpfProgram(program)]);
    return true;
  } catch (error) {
    if (isNetlinkError(error, EEXIST)) return false;
    throw error;
  }
}

function removeOwn(socket: NetlinkSocket, link: Named, filters: readonly Filter[]): void {
  for (const { handle, kind } of filters.filter(isFilter)) delFilter(socket, { link, ...PLACE, handle }, kind);
}

/** Removes the queueing discipline, and the filter with it, unless others use it. */
function removeIfUnused(
  socket: NetlinkSocket,
  link: Named,
  filters = listFilters(socket, link, PLACE.parent),
): boolean {
  // A queueing discipline of the kind ingress lists the same filters for both.
  if (![...filters, ...listFilters(socket, link, TC_H_FOR_EGRESS)].every(isOwn)) return false;
  // The kernel compares the kind. `redirect` makes the other one, and takes it along unless it finds this filter there.
  const kinds = filters.length === 0 ? ["clsact"] : ["clsact", "ingress"];
  return kinds.some((kind) => delQdisc(socket, { link, ...INGRESS }, kind) === "deleted");
}

function isIntact(filter: Filter): boolean {
  const found = isFilter(filter) ? readBpfProgram(filter.options) : undefined;
  return found !== undefined && isSameBytes(found, program);
}

function isFilter(filter: Filter): boolean {
  return isOwn(filter) && filter.handle !== 0;
}

/** The filter, or the entry for its list, which has no handle. */
function isOwn({ handle, kind, priority }: Filter): boolean {
  return kind === "bpf" && priority === PLACE.priority && (handle === ALONE || handle === GUEST || handle === 0);
}

/** As the kind of resource makes it: the queueing discipline would go with it, if this filter were not there. */
function isRedirect({ kind, options }: Filter): boolean {
  return kind === "u32" && (readU32(options)?.redirects.length ?? 1) > 0;
}
