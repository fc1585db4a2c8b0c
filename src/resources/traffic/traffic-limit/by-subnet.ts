/**
 * A limit for some of what a link sends, selected by the remote address: an htb qdisc with two classes. Class 1:30 has the
 * limit, 1:1 has none, and u32 filters put the configured subnets into one of them. Handles and numbers are those of the
 * reference plugin's 1.5 releases, which supported this.
 *
 * We give each class a queue. The default queue holds as many packets as the link's queue length, which is 0 for a veth.
 */
import type { Link } from "../../../ffi/netlink/route/link.ts";
import { addClass, addFilter, addQdisc, listClasses, listFilters } from "../../../ffi/netlink/tc/queueing.ts";
import {
  bfifo,
  htb,
  type HtbClass,
  htbClass,
  pfifo,
  readHtb,
  readHtbClass,
} from "../../../ffi/netlink/tc/shapers.ts";
import { ANY_PACKET, readU32, u32Class, type U32Key } from "../../../ffi/netlink/tc/u32.ts";
import { tcHandle, type TcObject } from "../../../ffi/netlink/tc/tc-object.ts";
import { ETH_P_IP, ETH_P_IPV6 } from "../../../ffi/netlink/uapi/traffic-control.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { networkOf, parsePrefix } from "../../../net/address.ts";
import { ROOT } from "./all-traffic.ts";
import { bufferTicks, isBufferOf, type Limit, queueBytes } from "./token-bucket.ts";

export interface Subnets {
  /** In CIDR notation. */
  cidrs: string[];
  /** True: the limit is for these subnets. False: for everything else. */
  limited: boolean;
  /** Which address of a packet is the remote one. */
  side: "source" | "destination";
}

const LIMITED = 0x30, FREE = 0x1;
/** The reference plugin's rate for "no limit", with a burst of 10 ms. Without a burst each packet would be delayed. */
const FREE_LIMIT: Limit = { rate: 100_000_000_000, burst: 1_000_000_000 };
const FREE_QUEUE_PACKETS = 1000;
/** Where the addresses are in the header (linux/ip.h, linux/ipv6.h). */
const OFFSETS = { 4: { source: 12, destination: 16 }, 6: { source: 8, destination: 24 } };

export function limitBySubnet(
  socket: NetlinkSocket,
  link: Pick<Link, "index" | "name">,
  limit: Limit,
  subnets: Subnets,
): void {
  addQdisc(socket, { link, ...ROOT }, htb({ defaultClass: defaultOf(subnets) }));
  const limited = tcHandle(1, LIMITED), free = tcHandle(1, FREE);
  addClass(socket, { link, parent: ROOT.handle, handle: limited }, htbClass(classFor(limit)));
  addClass(socket, { link, parent: ROOT.handle, handle: free }, htbClass(classFor(FREE_LIMIT)));
  addQdisc(socket, { link, parent: limited, handle: 0 }, bfifo(queueBytes(limit)));
  addQdisc(socket, { link, parent: free, handle: 0 }, pfifo(FREE_QUEUE_PACKETS));
  for (const cidr of subnets.cidrs) {
    const { priority, protocol, keys, classId } = filterOf(cidr, subnets);
    addFilter(socket, { link, parent: ROOT.handle, priority, protocol }, u32Class(keys, classId));
  }
}

export function verifyBySubnet(
  socket: NetlinkSocket,
  link: Link,
  limit: Limit,
  subnets: Subnets,
  root: TcObject,
): string[] {
  if (root.kind !== "htb") return [`Failed to find qdisc: ${link.name} has ${root.kind} where htb is due`];
  const differences: string[] = [];
  if (readHtb(root.options)?.defaultClass !== defaultOf(subnets)) {
    differences.push(`Default class does not match: on ${link.name}`);
  }
  const classes = listClasses(socket, link);
  for (const [minor, wanted] of [[LIMITED, limit], [FREE, FREE_LIMIT]] as const) {
    const found = classes.find(({ handle }) => handle === tcHandle(1, minor));
    const name = `class 1:${minor.toString(16)}`;
    if (found === undefined) {
      differences.push(`${name} is missing on ${link.name}`);
      continue;
    }
    const { rate, buffer } = readHtbClass(found.options);
    if (rate !== wanted.rate) {
      differences.push(`Rate doesn't match: ${rate} in ${name} of ${link.name}, not ${wanted.rate}`);
    }
    if (minor === LIMITED && !isBufferOf(limit, buffer)) {
      differences.push(`Buffer doesn't match: ${buffer} in ${name} of ${link.name}, not ${bufferTicks(limit)}`);
    }
  }
  const present = new Set<string>();
  for (const { options, priority, protocol, kind } of listFilters(socket, link, ROOT.handle)) {
    const filter = kind === "u32" ? readU32(options) : undefined;
    if (filter !== undefined) present.add(describe({ priority, protocol, ...filter }));
  }
  for (const cidr of subnets.cidrs) {
    if (present.delete(describe(filterOf(cidr, subnets)))) continue;
    differences.push(`the filter for ${cidr} is missing on ${link.name}`);
  }
  for (const each of present) differences.push(`${link.name} has a filter that nobody asked for: ${each}`);
  return differences;
}

function classFor(limit: Limit): HtbClass {
  return { rate: limit.rate, buffer: bufferTicks(limit) };
}

function defaultOf({ limited }: Subnets): number {
  return limited ? FREE : LIMITED;
}

interface SubnetFilter {
  priority: number;
  protocol: number;
  keys: readonly U32Key[];
  classId: number;
}

/** IPv4 and IPv6 need different priorities: all filters of one priority have the same protocol. */
function filterOf(cidr: string, { limited, side }: Subnets): SubnetFilter {
  const prefix = parsePrefix(cidr)!;
  const v4 = prefix.bytes.length === 4;
  const network = new DataView(networkOf(prefix).buffer);
  const offset = OFFSETS[v4 ? 4 : 6][side];
  const keys: U32Key[] = [];
  for (let word = 0; word * 32 < prefix.bits; word++) {
    const bits = Math.min(prefix.bits - word * 32, 32);
    keys.push({ offset: offset + word * 4, value: network.getUint32(word * 4), mask: (-1 << (32 - bits)) >>> 0 });
  }
  return {
    priority: v4 ? 16 : 15,
    protocol: v4 ? ETH_P_IP : ETH_P_IPV6,
    keys: keys.length === 0 ? ANY_PACKET : keys,
    classId: tcHandle(1, limited ? LIMITED : FREE),
  };
}

function describe({ priority, protocol, keys, classId }: SubnetFilter): string {
  const matches = keys.map(({ offset, value, mask }) => `${value.toString(16)}/${mask.toString(16)} at ${offset}`);
  const words = matches.join(" and ");
  return `priority ${priority}, protocol ${protocol.toString(16)}, ${words}, to 1:${(classId & 0xffff).toString(16)}`;
}
