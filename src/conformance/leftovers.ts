/** What the kernel and the directories hold, as lines: two lists, before and after, show what a plugin leaves behind. */
import { rulesetLines } from "../ffi/netlink/nftables/ruleset.ts";
import { listAddresses } from "../ffi/netlink/route/address.ts";
import { listLinks } from "../ffi/netlink/route/link.ts";
import { loopback } from "../ffi/netlink/route/loopback.ts";
import { describeRoute, listRoutes } from "../ffi/netlink/route/route.ts";
import { listRoutingRules } from "../ffi/netlink/route/rule.ts";
import { listClasses, listQdiscs } from "../ffi/netlink/tc/queueing.ts";
import { readHtbClass, readTbf } from "../ffi/netlink/tc/shapers.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, type NetlinkSocket, withNetlink } from "../ffi/netlink/socket.ts";
import { AF_INET, AF_INET6 } from "../ffi/socket/socket.ts";
import { formatPrefix, isLinkLocal } from "../net/address.ts";
import { UnmetDemand } from "./unmet-demand.ts";

import { writtenFiles } from "./files.ts";
import type { TrialContainer, TrialHost } from "./host.ts";

const BITS = 8;

/** The rule that the kernel adds with the first VRF names this table. */
const NO_TABLE = 0;
const RT_TABLE_UNSPEC = 0, FIRST_MULTICAST = 0xff;

export function linesOnHost(): string[] {
  return [
    ...withNetlink(NETLINK_ROUTE, (routes) => [...networkLines(routes), ...limits(routes)]),
    ...packetRules(),
    ...writtenFiles(),
  ];
}

export function linesInContainer(host: TrialHost, container: TrialContainer): string[] {
  return host.inside(container, (routes) => [...networkLines(routes), ...packetRules()]);
}

/** Without what the kernel adds by itself to every link, some time after it is up. */
function networkLines(socket: NetlinkSocket): string[] {
  const links = listLinks(socket), names = new Map(links.map(({ index, name }) => [index, name]));
  const addresses = listAddresses(socket, 0).filter((one) =>
    one.linkIndex !== loopback.index && !isLinkLocal(one.bytes)
  );
  const routes = [AF_INET, AF_INET6].flatMap((family) => listRoutes(socket, family, RT_TABLE_UNSPEC))
    .filter(({ dst, oif }) => oif !== loopback.index && !isLinkLocal(dst.bytes) && dst.bytes[0] !== FIRST_MULTICAST);
  return [
    ...links.map(({ name, mtu }) => `link ${name} with MTU ${mtu}`),
    ...addresses.map((one) => `address ${formatPrefix(one)} on ${names.get(one.linkIndex)}`),
    ...routes.map((route) => `route ${describeRoute(route)} on ${names.get(route.oif) ?? "no link"}`),
    ...listRoutingRules(socket, 0).filter(({ table }) => table !== NO_TABLE).map(({ family, priority, table }) =>
      `rule ${priority} of IPv${family === AF_INET ? 4 : 6} to table ${table}`
    ),
  ];
}

const LIMIT = "limit of ";

export const isLimit = (line: string) => line.startsWith(LIMIT);

/** The line of a limit begins with this text. */
export const limitTo = (bitsPerSecond: number) => `${LIMIT}${bitsPerSecond} bit/s`;

/** The limits that token buckets and classes of traffic set. */
function limits(socket: NetlinkSocket): string[] {
  const buckets = listQdiscs(socket).filter(({ kind }) => kind === "tbf");
  return listLinks(socket).flatMap((link) =>
    [
      ...buckets.filter(({ linkIndex }) => linkIndex === link.index).map(({ options }) => readTbf(options)),
      ...listClasses(socket, link).filter(({ kind }) => kind === "htb").map(({ options }) => readHtbClass(options)),
    ].map(({ rate }) => `${limitTo(rate * BITS)} on ${link.name}`)
  );
}

export function packetRules(): string[] {
  return withNetlink(NETLINK_NETFILTER, rulesetLines);
}

/** Five seconds: a busy kernel takes long, and a plugin that leaves something is told late, not wrongly. */
const LOOKS = 100, PAUSE_MS = 50;

export function requireNothingLeftOnHost(before: readonly string[]): void {
  requireNothingLeft(before, linesOnHost, "left on the host after DEL");
}

export function requireNothingLeftInside(
  host: TrialHost,
  container: TrialContainer,
  before: readonly string[],
): void {
  requireNothingLeft(before, () => linesInContainer(host, container), "left in the namespace after DEL");
}

/** The kernel may take a moment to remove a link for good. */
function requireNothingLeft(before: readonly string[], now: () => readonly string[], what: string): void {
  let left = more(before, now());
  for (let look = 1; left.length > 0 && look < LOOKS; look++) {
    Bun.sleepSync(PAUSE_MS);
    left = more(before, now());
  }
  if (left.length > 0) throw new UnmetDemand(`${what}: ${left.join("; ")}`);
}

/** Lines that come more often than before. */
export function more(before: readonly string[], now: readonly string[]): string[] {
  const known = new Map<string, number>();
  for (const line of before) known.set(line, (known.get(line) ?? 0) + 1);
  return now.filter((line) => {
    const count = known.get(line) ?? 0;
    known.set(line, count - 1);
    return count <= 0;
  });
}
