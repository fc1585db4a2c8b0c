/**
 * What makes a container's link usable: its sysctls, its addresses, the link up, its routes. DEL does nothing: the kernel
 * drops all of them with the link.
 *
 * ADD adds the addresses before it sets the link up: the kernel then announces them itself (arp_notify, ndisc_notify).
 */
import { AF_INET6 } from "../../../ffi/socket/socket.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import type { Container } from "../../../contract/host.ts";
import { errnoText } from "../../../ffi/errno.ts";
import { awaitChange } from "../../../ffi/netlink/events.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { addAddress, delAddress, familyOf, listAddresses } from "../../../ffi/netlink/route/address.ts";
import { getLink, type Link, linkIndex, setLink } from "../../../ffi/netlink/route/link.ts";
import {
  addRoute,
  describeRoute,
  isSameRoute,
  type KernelRoute,
  listRoutes,
} from "../../../ffi/netlink/route/route.ts";
import { RT_TABLE_UNSPEC, RTNLGRP_IPV6_IFADDR } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { IF_OPER_UP } from "../../../ffi/netlink/uapi/if-link.ts";
import { readSysctl, tryWriteSysctl, writeSysctl } from "../../../ffi/sysctl.ts";
import { formatAddress, formatPrefix, parseAddress, parsePrefix, type Prefix } from "../../../net/address.ts";
import type { Route } from "../../../cni/result.ts";
import { vrfTable } from "../../routing/shared/routing-tables.ts";
import { dropConnectedRoutes, pointToPointRoutes } from "./point-to-point.ts";
import { refuseAddresses, refuseRoutes } from "./refused.ts";

interface AddressingSpec {
  ifName: string;
  addresses: { address: string; gateway?: string }[];
  routes: Route[];
  /** Routes by the link that another kind adds. Nothing of others is to be in front of them, either. */
  laterRoutes?: Route[];
  /** RTPROT_…, of the routes; undefined where nobody says who added them. */
  protocol?: number;
  /** Sysctls by key below `net/`, such as `ipv4/conf/eth0/arp_notify`. ADD skips those that the kernel lacks. */
  sysctls: Record<string, string>;
  /** Run IPv6 duplicate address detection, which takes a second or two. */
  detectDuplicates: boolean;
  /** Only the gateways are at the link's other end, so all packets go through them. */
  pointToPoint?: true;
}

const DUPLICATE_WAIT_MS = 5000;
/** To the kernel, this is none. */
export const NO_GATEWAY = "0.0.0.0";

export const addressingKind: ResourceKind<AddressingSpec> = {
  kind: "addressing",
  addressesIn: ({ addresses }) => addresses,
  routesIn: ({ routes, laterRoutes = [] }) => [...routes, ...laterRoutes].map(({ dst }) => dst),
  apply(spec, host) {
    const container = host.container!;
    const { ifName } = spec;
    const index = linkIndex(container.route, ifName);
    if (index === undefined) throw new CniError(INTERNAL, `failed to lookup "${ifName}": Link not found`);
    // Loops instead of array methods: the first call of each costs a process up to 0.07 ms.
    const prefixes: Prefix[] = [];
    let hasV6 = false;
    for (const { address } of spec.addresses) {
      const prefix = prefixOf(address);
      prefixes.push(prefix);
      hasV6 ||= prefix.bytes.length === 16;
    }
    container.inside(() => {
      for (const key in spec.sysctls) tryWriteSysctl(`net/${key}`, spec.sysctls[key]!);
      if (hasV6) enableV6(ifName);
    });
    for (const prefix of prefixes) {
      const text = formatPrefix(prefix);
      try {
        if (addAddress(container.route, index, prefix, { skipDad: !spec.detectDuplicates }) === "added") continue;
      } catch (error) {
        const reason = (error as Error).message;
        throw new CniError(INTERNAL, `failed to add IP addr ${text} to "${ifName}": ${reason}`, "", { cause: error });
      }
      throw new CniError(INTERNAL, `failed to add IP addr ${text} to "${ifName}": file exists`);
    }
    setLink(container.route, { index, name: ifName }, { up: true });
    if (hasV6 && spec.detectDuplicates) settle(container, index, ifName);
    for (const route of kernelRoutes(spec, index)) addRouteOrExplain(container, ifName, route);
    if (spec.pointToPoint) dropConnectedRoutes(spec.addresses, index, container.route);
  },
  judge(spec) {
    const { ifName } = spec, addresses = spec.addresses.map(({ address }) => prefixOf(address));
    refuseAddresses(ifName, addresses);
    refuseRoutes(ifName, kernelRoutes(spec, 0), addresses);
  },
  remove: () => {},
  verify(spec, host) {
    const { route: socket } = host.container!;
    const { ifName } = spec;
    const link = getLink(socket, ifName);
    if (link === undefined) return [`Cannot find container link ${ifName}`];
    const differences: string[] = [];
    if (!link.up) differences.push(`link ${ifName} in the container is down`);
    for (const address of missingAddresses(spec, listAddresses(socket, link.index))) {
      differences.push(`Failed to match addr ${address} on interface ${ifName}`);
    }
    for (const route of missingRoutes(spec, link.index, socket)) {
      differences.push(`Expected Route ${describeRoute(route)} not found in routing table`);
    }
    return differences;
  },
  inTheWay(spec, host) {
    const { route: socket } = host.container!, link = getLink(socket, spec.ifName);
    const { alreadyRouted, findInFront } = inFront();
    if (link === undefined) return alreadyRouted(kernelRoutes(spec, 0), socket);
    return [...new Set(findInFront(givenBy(spec, link), socket).map(({ text }) => text))];
  },
  stoppedByOthers: ({ ifName, addresses }, host) =>
    (require("../shared/taken-for.ts") as typeof import("../shared/taken-for.ts"))
      .takenForAnother(ifName, addresses.map(({ address }) => prefixOf(address)), host),
  repair(spec, host) {
    const { route: socket, inside } = host.container!;
    const { ifName } = spec;
    const link = getLink(socket, ifName);
    if (link === undefined) throw new Error(`Cannot find container link ${ifName}`);
    const missing = missingAddresses(spec, listAddresses(socket, link.index));
    if (missing.some((address) => address.includes(":"))) inside(() => enableV6(ifName));
    for (const address of missing) give(address);
    if (!link.up) setLink(socket, link, { up: true });
    try {
      addRoutes(missingRoutes(spec, link.index, socket));
    } catch {
      // The kernel's own routes are missing, too. It adds them with the addresses.
      for (const { address } of spec.addresses) delAddress(socket, link.index, prefixOf(address));
      for (const { address } of spec.addresses) give(address);
      addRoutes(missingRoutes(spec, link.index, socket));
    }
    const { putOursFirst } = inFront();
    putOursFirst(givenBy(spec, link), socket, (prefix) => give(formatPrefix(prefix)));
    addRoutes(missingRoutes(spec, link.index, socket));
    if (spec.pointToPoint) dropConnectedRoutes(spec.addresses, link.index, socket);

    function give(address: string): void {
      addAddress(socket, link!.index, prefixOf(address), { skipDad: !spec.detectDuplicates });
    }
    function addRoutes(routes: KernelRoute[]): void {
      const master = link!.master === undefined ? undefined : getLink(socket, link!.master);
      // The routes of a VRF's member are in the VRF's table.
      const table = master && vrfTable(master);
      for (const route of routes) {
        addRouteOrExplain(host.container!, ifName, { ...route, table: route.table ?? table });
      }
    }
  },
  gist: ({ addresses }) => ({ addresses: addresses.map(({ address }) => address) }),
  describe: ({ ifName, addresses }) =>
    `${addresses.map(({ address }) => address).join(", ") || "link up"} on ${ifName}`,
};

export const addressing = resource(addressingKind);

function prefixOf(address: string): Prefix {
  const prefix = parsePrefix(address);
  if (prefix === undefined) throw new CniError(INTERNAL, `invalid CIDR address: ${address}`);
  return prefix;
}

// For those who look at what was made.
const inFront = () => require("./in-front.ts") as typeof import("./in-front.ts");

function givenBy(spec: AddressingSpec, link: Link) {
  const addresses = spec.addresses.map(({ address }) => prefixOf(address));
  const routes = kernelRoutes({ ...spec, routes: [...spec.routes, ...spec.laterRoutes ?? []] }, link.index);
  return { link, addresses, routes, isPointToPoint: spec.pointToPoint === true };
}

function missingAddresses({ addresses }: AddressingSpec, present: readonly Prefix[]): string[] {
  const found = present.map(formatPrefix);
  return addresses.map(({ address }) => address).filter((address) =>
    !found.includes(formatPrefix(prefixOf(address)))
  );
}

/** Looks in all tables: sbr and vrf, called later in the chain, move routes to other tables. */
function missingRoutes(spec: AddressingSpec, oif: number, socket: NetlinkSocket): KernelRoute[] {
  const routes: Record<number, KernelRoute[]> = {};
  return kernelRoutes(spec, oif).filter((wanted) => {
    const family = familyOf(wanted.dst.bytes);
    const present = routes[family] ??= listRoutes(socket, family, RT_TABLE_UNSPEC);
    return !present.some((route) =>
      isSameRoute(wanted, route) && (wanted.table === undefined || wanted.table === route.table)
    );
  });
}

function enableV6(ifName: string): void {
  for (const name of ["lo", ifName]) {
    const key = `net/ipv6/conf/${name}/disable_ipv6`;
    const value = readSysctl(key);
    if (value !== undefined && value !== "0") writeSysctl(key, "0");
  }
  const key = `net/ipv6/conf/${ifName}/keep_addr_on_down`;
  try {
    writeSysctl(key, "1");
  } catch (error) {
    const reason = (error as Error).message;
    throw new CniError(INTERNAL, `failed to enable keep_addr_on_down for interface "${ifName}": ${reason}`);
  }
}

/** Waits for duplicate address detection. Throws when another machine has one of the addresses. */
function settle(container: Container, index: number, ifName: string): void {
  const failed = `failed to settle addresses for "${ifName}": link ${ifName}`;
  const isSettled = () => {
    let tentative = false;
    for (const address of listAddresses(container.route, index, AF_INET6)) {
      tentative ||= address.tentative;
      if (!address.duplicate) continue;
      throw new CniError(INTERNAL, `${failed} has address ${formatAddress(address.bytes)} in DADFAILED state`);
    }
    return !tentative;
  };
  if (awaitChange(RTNLGRP_IPV6_IFADDR, DUPLICATE_WAIT_MS, isSettled, container.inside)) return;
  if (getLink(container.route, index)?.operstate !== IF_OPER_UP) return;
  throw new CniError(INTERNAL, `${failed} still has tentative addresses after ${DUPLICATE_WAIT_MS / 1000} seconds`);
}

/** Gives routes that name no gateway the first gateway of their family. */
export function kernelRoutes(
  spec: Pick<AddressingSpec, "addresses" | "routes" | "protocol" | "pointToPoint">,
  oif: number,
): KernelRoute[] {
  const firstGateway: Record<number, Uint8Array> = {};
  for (const { gateway } of spec.addresses) {
    const bytes = gateway ? parseAddress(gateway) : undefined;
    if (bytes !== undefined) firstGateway[bytes.length] ??= bytes;
  }
  const routes: KernelRoute[] = [];
  for (const { dst: text, gw, priority, table, scope, mtu, advmss } of spec.routes) {
    const dst = prefixOf(text);
    const gateway = gw === NO_GATEWAY ? undefined : gw ? parseAddress(gw) : firstGateway[dst.bytes.length];
    routes.push({ dst, oif, gateway, priority, table, scope, mtu, advmss, protocol: spec.protocol });
  }
  if (!spec.pointToPoint) return routes;
  const { direct, subnets } = pointToPointRoutes(spec.addresses, oif);
  return [...direct, ...routes, ...subnets];
}

function addRouteOrExplain(container: Container, ifName: string, route: KernelRoute): void {
  try {
    addRoute(container.route, route);
  } catch (error) {
    const reason = isNetlinkError(error)
      ? `${errnoText(error.errno)}${error.text && ` (${error.text})`}`
      : String(error);
    throw new CniError(INTERNAL, `failed to add route '${describeRoute(route)} dev ${ifName}': ${reason}`, "", {
      cause: error,
    });
  }
}
