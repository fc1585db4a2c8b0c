/** What the kernel's routes say of a packet, and why they refuse it. */
import { EACCES, EHOSTUNREACH, EINVAL, ENETUNREACH, EXDEV } from "../../ffi/errno.ts";
import { shell } from "../../process/shell-word.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import type { Hop, KernelRoute } from "../../ffi/netlink/route/route.ts";
import type { RouteQuestion } from "../../ffi/netlink/route/route-question.ts";
import {
  RT_TABLE_MAIN,
  RTN_LOCAL,
  RTN_UNICAST,
  RTNH_F_DEAD,
  RTNH_F_LINKDOWN,
} from "../../ffi/netlink/uapi/rtnetlink.ts";
import { sysctlName } from "../../ffi/sysctl.ts";
import { contains, formatAddress, formatPrefix } from "../../net/address.ts";
import { nameWithPorts } from "../../net/ip-protocol.ts";
import { isKnown } from "../../net/netfilter/known-bytes.ts";
import { globalAddresses, isAddressOf, linkAt, type NetnsFacts, sysctlFor } from "../facts.ts";
import { repairOf, setSysctl } from "../remedy.ts";
import { byVrf, vrfOf } from "./other-switch.ts";
import { destinationOf, endsOf, type Move, portIn, sourceOf, stopped, type Traveller } from "./traveller.ts";

/** A way on: the link, and who is next. */
export interface NextWay {
  link: Link;
  nextHop: Uint8Array;
  text: string;
}

/** `input`: the link by which the packet came in. Its own source address a sender has only where it has chosen it. */
export function questionFor(traveller: Traveller, input?: Link, source?: Uint8Array): RouteQuestion {
  const { packet } = traveller, ends = endsOf(packet), { mark, protocol } = packet;
  const hasPorts = nameWithPorts(protocol) !== undefined;
  return {
    destination: destinationOf(traveller),
    source,
    inputLink: input?.index,
    mark: isKnown(mark) ? new DataView(mark.value.buffer, mark.value.byteOffset).getUint32(0, true) : undefined,
    protocol,
    sourcePort: hasPorts ? portIn(ends.sourcePort) || SOME_PORT : undefined,
    destinationPort: hasPorts ? portIn(ends.destinationPort) || SOME_PORT : undefined,
  };
}

/** One that a client may have. */
const SOME_PORT = 40000;

export function isForItself({ type }: KernelRoute): boolean {
  return type === RTN_LOCAL;
}

export function isUnicast({ type }: KernelRoute): boolean {
  return type === undefined || type === RTN_UNICAST;
}

/** One for each next hop among which the kernel chooses. */
export function waysOf(netns: NetnsFacts, route: KernelRoute, destination: Uint8Array): NextWay[] {
  const ignored = netns.sysctl("net/ipv4/conf/all/ignore_routes_with_linkdown") === "1"
    ? RTNH_F_DEAD | RTNH_F_LINKDOWN
    : RTNH_F_DEAD;
  const alive = route.hops?.filter(({ flags }) => (flags & ignored) === 0) ?? [];
  const hops: Pick<Hop, "oif" | "gateway">[] = alive.length > 0 ? alive : route.hops ?? [route];
  return hops.flatMap(({ oif, gateway }) => {
    const link = linkAt(netns, oif);
    if (link === undefined) return [];
    const via = gateway === undefined ? "" : ` via ${formatAddress(gateway)}`;
    const table = route.table === undefined || route.table === RT_TABLE_MAIN ? "" : `, table ${route.table}`;
    const prefix = route.dst.bits === 0 ? "default" : formatPrefix(route.dst);
    return [{ link, nextHop: gateway ?? destination, text: `${prefix}${via} dev ${link.name}${table}` }];
  });
}

/** The kernel's reason, told apart by what it says to the same question asked otherwise. */
export function routeRefused(traveller: Traveller, errno: number, input?: Link): Move[] {
  const { netns } = traveller, destination = formatAddress(destinationOf(traveller)), what = "route";
  const plain = netns.route({ destination: destinationOf(traveller) });
  if (errno === EACCES) {
    return stopped(traveller, { code: "route-refused", what, text: `prohibited: ${destination}` });
  }
  if (errno === ENETUNREACH) {
    return "errno" in plain ? noRoute(traveller, destination) : byRule(traveller, destination);
  }
  if (input === undefined && sourceOf(traveller)[0] === LOOPBACK_NET && sourceOf(traveller).length === 4) {
    return localnetOff(traveller, "errno" in plain ? undefined : linkAt(netns, plain.oif));
  }
  if (input === undefined || "errno" in plain) {
    const isRefusal = errno === EINVAL || errno === EHOSTUNREACH;
    return isRefusal
      ? stopped(traveller, { code: "route-refused", what, text: `refused by a route to ${destination} or a rule` })
      : noRoute(traveller, destination);
  }
  if (errno === EHOSTUNREACH) {
    return forwardingOff(traveller, input) ??
      stopped(traveller, { code: "route-refused", what, text: `unreachable: ${destination}` });
  }
  return reversePath(traveller, input) ?? refusedSource(traveller, errno, input);
}

/** Without the packet's source, mark and link there is a way. */
function byRule(traveller: Traveller, destination: string): Move[] {
  const text = `a routing rule or its table has no way to ${destination} for this packet`;
  const mend = [{ advice: "'ip rule' lists them: by source, mark, link and port" }];
  return stopped(traveller, { code: "route-refused", what: "route", text, mend });
}

export const LOOPBACK_NET = 127;

const INTERNAL = "the network is an internal one of podman, and has no way out on purpose";

export function localnetOff(traveller: Traveller, link: Link | undefined): Move[] {
  const where = link?.name ?? "its link", source = formatAddress(sourceOf(traveller));
  const text = `${source} may not leave by ${where}: route_localnet is 0`;
  const mend = link &&
    [setSysctl(traveller.netns, sysctlName(`net/ipv4/conf/${link.name}/route_localnet`), 1)];
  return stopped(traveller, { code: "localnet-off", what: where, text, mend });
}

function noRoute(traveller: Traveller, destination: string): Move[] {
  const { netns } = traveller, what = "route", { container } = netns;
  const text = `${netns.label} has no route to ${destination}`;
  if (container === undefined) {
    const down = netns.links().filter(({ up, kind }) => !up && kind !== "bridge").map(({ name }) => name);
    const advice = `give this host a route${
      down.length === 0 ? "" : `; these links of it are down: ${down.join(", ")}`
    }`;
    return stopped(traveller, { code: "no-route", what, text, mend: [{ advice }] });
  }
  const { network, ifName } = container.attached[0]!, link = netns.links().find(({ name }) => name === ifName);
  const mend = repairOf(netns);
  if (link === undefined) {
    const again = shell`patchbay del ${network} ${container.operand}, and add it again`;
    const text = `${netns.label} has no ${ifName}`;
    return stopped(traveller, { code: "no-link", what: ifName, text, mend: [{ advice: again }] });
  }
  if (!link.up) return stopped(traveller, { code: "link-down", what: ifName, text: `${ifName} is down`, mend });
  const vrf = vrfOf(netns, link);
  if (vrf !== undefined) return byVrf(traveller, link, vrf);
  const { family } = traveller.packet;
  const own = globalAddresses(netns, family, link.index);
  if (own.length === 0) {
    const address = `${ifName} has no address of IPv${family}`;
    return stopped(traveller, { code: "no-address", what: ifName, text: address, mend });
  }
  const { attached } = container, to = destinationOf(traveller);
  const given = [...attached.flatMap(({ routes }) => routes ?? []), ...own];
  const isGiven = attached.some(({ routes }) => routes === undefined) ||
    given.some((prefix) => prefix.bytes.length === to.length && contains(prefix, to));
  if (!isGiven) {
    const advice = attached.every(({ closed }) => closed === undefined)
      ? 'its network gives it none: "isDefaultGateway" of bridge, or "routes" in ipam'
      : INTERNAL;
    return stopped(traveller, { code: "no-route", what, text, mend: [{ advice }] });
  }
  const advice = 'or its network gives it none: "isDefaultGateway" of bridge, or "routes" in ipam';
  return stopped(traveller, { code: "no-route", what, text, mend: [...mend, { advice }] });
}

/** Also of IPv6, for which routes do not tell. Undefined when the host forwards. */
export function forwardingOff(traveller: Traveller, input: Link): Move[] | undefined {
  const { netns, packet: { family } } = traveller, what = "forwarding";
  const keyOf = (link: string) => `net/ipv${family}/conf/${link}/forwarding`;
  const isOff = (key: string) => netns.sysctl(key) === "0";
  // Linux 6.17; of IPv6 alone.
  if (netns.sysctl(`net/ipv6/conf/${input.name}/force_forwarding`) === "1" && family === 6) return undefined;
  if (isOff(keyOf("all"))) {
    const name = family === 4 ? "net.ipv4.ip_forward" : sysctlName(keyOf("all"));
    const text = `${name} is 0: ${netns.label} forwards nothing`;
    return stopped(traveller, { code: "forwarding-off", what, text, mend: [setSysctl(netns, name, 1)] });
  }
  if (family === 6 || !isOff(keyOf(input.name))) return undefined;
  const name = sysctlName(keyOf(input.name)), text = `${name} is 0`;
  if (traveller.tracked[0]?.netns.container?.attached.some(({ closed }) => closed === input.name)) {
    return stopped(traveller, { code: "link-forwarding-off", what, text, mend: [{ advice: INTERNAL }] });
  }
  return stopped(traveller, { code: "link-forwarding-off", what, text, mend: [setSysctl(netns, name, 1)] });
}

/** Undefined when the way back is by the link, or nobody asks. */
function reversePath(traveller: Traveller, input: Link): Move[] | undefined {
  const { netns } = traveller, source = sourceOf(traveller);
  if (source.length !== 4) return undefined;
  const value = sysctlFor(netns, input, "rp_filter");
  if (value === 0) return undefined;
  const back = netns.route({ destination: source });
  const way = "errno" in back ? undefined : waysOf(netns, back, source)[0];
  if (way?.link.index === input.index) return undefined;
  const where = way === undefined ? "nowhere" : `to ${way.link.name}`;
  const own = `net/ipv4/conf/${input.name}/rp_filter`, name = sysctlName(own);
  const told = netns.sysctl(own) === String(value) ? name : "net.ipv4.conf.all.rp_filter";
  return stopped(traveller, {
    code: "rp-filter",
    what: "rp_filter",
    text: `${told} is ${value}, and the way back to ${formatAddress(source)} is ${where}`,
    mend: [
      setSysctl(netns, name, 2, "takes a way back by any link"),
      { advice: `or give ${formatAddress(source)} a route by ${input.name}` },
    ],
  });
}

function refusedSource(traveller: Traveller, errno: number, input: Link): Move[] {
  const { netns } = traveller, source = formatAddress(sourceOf(traveller)), what = "route";
  const isOwn = isAddressOf(netns, sourceOf(traveller));
  if (errno !== EINVAL && errno !== EXDEV) {
    return stopped(traveller, { code: "route-refused", what, text: `refused (error ${errno})` }, "unknown");
  }
  if (!isOwn && sysctlFor(netns, input, "rp_filter") === 0 && sourceOf(traveller)[0] !== LOOPBACK_NET) {
    return byRule(traveller, formatAddress(destinationOf(traveller)));
  }
  const reason = isOwn
    ? `${source} is an address of ${netns.label} itself`
    : `nobody behind ${input.name} has ${source}`;
  return stopped(traveller, { code: "martian", what, text: `refused as it comes in by ${input.name}: ${reason}` });
}
