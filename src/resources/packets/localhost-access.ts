/**
 * The host's own 127.0.0.1 reaches what is behind a link, such as the container of a port mapping (`route_localnet`). With
 * the setting alone, everybody behind that link could send to and from 127.0.0.0/8 of this host. So the setting is only made
 * together with two guards that drop such packets before anything else sees them: a filter on the link
 * (shared/loopback-filter.ts), which no flush of the rules takes, and a rule in a table of our own (owned-table.ts), which
 * also counts the users of a link. A kernel without the filter has only the rule.
 *
 *     table ip patchbay_localhost {
 *       counter br0 { }
 *       map users { type mark . mark : counter; elements = { 0x… . 0x… comment "id: …" : "br0" } }
 *       map links { type ifname : counter; elements = { "br0" comment "set by patchbay, filtered" : "br0" } }
 *       chain prerouting {
 *         type filter hook prerouting priority raw; policy accept;
 *         ip daddr 127.0.0.0/8 counter name iifname map @links drop
 *         ip saddr 127.0.0.0/8 counter name iifname map @links drop
 *       }
 *       chain translated {
 *         type filter hook prerouting priority dstnat + 2; policy accept;
 *         ip daddr 127.0.0.0/8 counter name iifname map @links meta mark set 0x7f000001
 *       }
 *     }
 *
 * The last user of a link takes the setting back, unless somebody else had made it before, and then removes the filter and
 * the link's element. When somebody flushed the table, the ledgers tell who is the last.
 *
 * Longer than 300 lines: making and taking back keep one order of setting, filter and rule, and are read side by side.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { from, inputLink, setPacketMark, to } from "../../ffi/netlink/nftables/packet-match.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { type Chain, createCounter, nameOfTable } from "../../ffi/netlink/nftables/table.ts";
import { drop, loaded } from "../../ffi/netlink/nftables/action.ts";
import type { Expression } from "../../ffi/netlink/nftables/expression.ts";
import { countIn, hostOrder } from "../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import {
  createElement,
  getElement,
  linkNameKey,
  linkNameOf,
  markPairKey,
  type NftSet,
} from "../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_PRE_ROUTING, NFT_REG_1 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { readSysctl, sysctlName, writeSysctl } from "../../ffi/sysctl.ts";
import { warn, warnOnce } from "../../process/warn.ts";
import { parseAddress, type Prefix } from "../../net/address.ts";
import { filterLoopback, filtersLoopback, stopFilteringLoopback, TRANSLATED_MARK } from "./shared/loopback-filter.ts";
import { netfilterOf } from "./shared/netfilter-socket.ts";
import { type FoundElement, ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { isLost, ownerComment, ownerKey } from "./shared/owner-comment.ts";

interface LocalhostAccessSpec extends Owner {
  /** The link of the host; "" when it is not known. */
  link: string;
  /** Somebody else had made the setting before ADD. */
  wasSet?: true;
}

const table = ownTables["localhost-access"];
const users: NftSet = { table, name: "users" };
const links: NftSet = { table, name: "links" };
const prerouting: Chain = { table, name: "prerouting" };
const translated: Chain = { table, name: "translated" };
/** Before connection tracking: the answers to the host's own packets still have the host's other address. */
const RAW = -300;
/** After all destination NAT: answers to the host's 127.0.0.1 have that address again. */
const AFTER_NAT = -98;
/** The comment of a link's element: whether the setting is ours, and whether the link has the filter. */
const SET = "set by patchbay", FOUND = "was set before", FILTERED = ", filtered", UNFILTERED = ", without a filter";

const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };

const owned = new OwnedTable({
  table,
  chains: [{
    chain: prerouting,
    hook: { type: "filter", hook: NF_INET_PRE_ROUTING, priority: RAW },
    rules: [
      [...to(loopback), inputLink, countIn(links.name), drop],
      [...from(loopback), inputLink, countIn(links.name), drop],
    ],
    replaces: () => true,
  }, {
    chain: translated,
    hook: { type: "filter", hook: NF_INET_PRE_ROUTING, priority: AFTER_NAT },
    rules: [[...to(loopback), inputLink, countIn(links.name), ...marked(TRANSLATED_MARK)]],
    replaces: () => true,
  }],
  sets: [
    { set: users, key: markPairKey, holds: "counters" },
    { set: links, key: linkNameKey, holds: "counters" },
  ],
  // The counter of a link has the link's name.
  groups: { elements: (link) => [{ set: links, key: linkNameOf(link), refers: true }] },
});

function marked(mark: number): Expression[] {
  return [loaded(hostOrder(mark), NFT_REG_1), setPacketMark];
}

const setting = (link: string) => `net/ipv4/conf/${link}/route_localnet`;

interface AccessPlan {
  messages: NftMessage[];
  /** The filter has just been asked for. */
  isFiltered: boolean;
}

/** `lost`: others removed the link's element, and with it the note whether the setting is ours. */
function planApply(host: Host, spec: LocalhostAccessSpec, lost = false): AccessPlan {
  const { netfilter: socket } = host, { link } = spec, comment = ownerComment(spec), key = ownerKey(spec);
  let isNew = !owned.exists(socket);
  const before = isNew ? undefined : getElement(socket, users, key)?.counter;
  if (before !== undefined && before !== link) {
    // An earlier ADD reached the container by another link. It may have been that link's last user.
    removeUsers(host, () => findUser(socket, spec));
    isNew = !owned.exists(socket);
  }
  const messages = isNew ? owned.frame() : [];
  const element = isNew ? undefined : getElement(socket, links, linkNameOf(link));
  const isFiltered = element === undefined;
  if (isFiltered) {
    // Taking back a setting of others is better than leaving ours behind without a guard.
    const isFound = !lost && spec.wasSet && readSysctl(setting(link)) === "1";
    const note = `${isFound ? FOUND : SET}${makeFilter(link, host, spec) ? FILTERED : UNFILTERED}`;
    if (isNew || owned.counterUse(socket, link) === undefined) messages.push(createCounter(table, link));
    messages.push(createElement(links, { key: linkNameOf(link), comment: note, counter: link }));
  }
  if (before !== link) messages.push(createElement(users, { key, comment, counter: link }));
  return { messages, isFiltered };
}

/** Returns whether the filter is there. */
function makeFilter(link: string, host: Host, spec?: LocalhostAccessSpec): boolean {
  const mayBeLeft = () => spec !== undefined && usersInLedgers(spec, host).length > 0;
  const obstacle = filterLoopback(host.route, link, mayBeLeft);
  if (obstacle !== undefined) {
    warnOnce(
      `127.0.0.1 of the host is guarded from ${link} by rules that a flush takes, and by no filter: ${obstacle}`,
    );
  }
  return obstacle === undefined;
}

function findUser(socket: NetlinkSocket, spec: LocalhostAccessSpec): FoundElement[] {
  return owned.find(socket, [{ set: users, key: ownerKey(spec) }], ownerComment(spec));
}

/**
 * Takes back the setting of links that lose their last user, and then their filter, before it removes them: without the
 * setting, no packet has to be dropped. When the plan runs again because somebody has come to use the link meanwhile, both
 * are made again. Returns the links that are closed.
 */
function removeUsers(host: Host, find: () => readonly FoundElement[]): Set<string> {
  const { netfilter: socket } = host, closed = new Map<string, { isOurs: boolean }>();
  commitUnchanged(socket, () => {
    const removed = find(), unused = owned.unusedWithout(socket, removed);
    for (const [link, { isOurs }] of closed) {
      if (unused.includes(link)) continue;
      makeFilter(link, host);
      if (isOurs) switchTo(link, "1");
      closed.delete(link);
    }
    for (const link of unused) {
      const note = getElement(socket, links, linkNameOf(link))?.comment;
      if (note === undefined) continue;
      const isOurs = !note.startsWith(FOUND);
      if (isOurs) switchTo(link, "0");
      if (note.endsWith(FILTERED)) stopFilteringLoopback(host.route, link);
      closed.set(link, { isOurs });
    }
    return owned.planRemoval(socket, removed, unused);
  });
  return new Set(closed.keys());
}

/** When somebody flushed the table, the last attachment whose ledger has the link closes it. */
function closeByLedgers(socket: NetlinkSocket, spec: LocalhostAccessSpec, host: Host): void {
  const { link, wasSet } = spec;
  if (link === "" || owned.counterUse(socket, link) !== undefined) return;
  const others = usersInLedgers(spec, host), isOurs = !wasSet && readSysctl(setting(link)) === "1";
  if (others.some((other) => !other.wasSet)) return;
  if (isOurs) switchTo(link, "0");
  if (others.length === 0) stopFilteringLoopback(host.route, link);
  // Somebody may have come to use the link meanwhile.
  if (owned.counterUse(socket, link) === undefined) return;
  makeFilter(link, host);
  if (isOurs) switchTo(link, "1");
}

function usersInLedgers({ link, ...owner }: LocalhostAccessSpec, host: Host): LocalhostAccessSpec[] {
  const others = host.recordedByOthers(localhostAccessKind.kind, owner) as LocalhostAccessSpec[];
  return others.filter((other) => other.link === link);
}

/** Whether somebody else has made the setting; for ADD. Our own is only made after the link's element. */
export function isSetByOthers(spec: LocalhostAccessSpec, host: Host): boolean {
  if (readSysctl(setting(spec.link)) !== "1") return false;
  const socket = netfilterOf(host), key = linkNameOf(spec.link);
  const noted = socket && getElement(socket, links, key)?.comment;
  return noted === undefined ? usersInLedgers(spec, host).every(({ wasSet }) => wasSet) : noted.startsWith(FOUND);
}

/** Whether 127.0.0.0/8 reaches a port that is published on this address of the host; without one, it is published on all. */
export function isForLocalhost({ hostIp }: { hostIp?: string }): boolean {
  if (hostIp === undefined || hostIp === "0.0.0.0") return true;
  const bytes = parseAddress(hostIp)!;
  return bytes.length === 4 && bytes[0] === 127;
}

function switchTo(link: string, value: string, before?: () => void): void {
  const present = readSysctl(setting(link));
  if (present === undefined || present === value) return;
  before?.();
  writeSysctl(setting(link), value);
}

export const localhostAccessKind: ResourceKind<LocalhostAccessSpec> = {
  kind: "localhost-access",
  apply(spec, host) {
    try {
      let isFiltered = false;
      const plan = () => {
        const { messages, ...made } = planApply(host, spec);
        ({ isFiltered } = made);
        return messages;
      };
      if (!commitUnchanged(host.netfilter, plan)) {
        return warn("127.0.0.1 does not reach the container: without nf_tables that would not be safe");
      }
      // The filter has gone with a former link of this name, or another call has just taken it away.
      switchTo(spec.link, "1", () => isFiltered || makeFilter(spec.link, host, spec));
    } catch (error) {
      undoAfter(error, () => localhostAccessKind.remove(spec, host));
      throw error;
    }
  },
  verify(spec, { netfilter, route }, isRestated) {
    const { link } = spec;
    if (link === "") return [];
    const differences: string[] = [];
    if (readSysctl(setting(link)) !== "1") differences.push(`${sysctlName(setting(link))} is not 1`);
    // Restated, the ADD may have been the reference plugin's, which drops no packets.
    if (isRestated) return differences;
    const note = getElement(netfilter, links, linkNameOf(link))?.comment;
    if (note === undefined) differences.push(`${link} is not in map links of table ${owned.name}`);
    if (note?.endsWith(FILTERED) && !filtersLoopback(route, link)) {
      differences.push(`${link} has no filter, or an altered one, for packets to and from 127.0.0.0/8`);
    }
    if (getElement(netfilter, users, ownerKey(spec))?.counter !== link) {
      differences.push(`${link} is not used by the container in map users of table ${owned.name}`);
    }
    return [...differences, ...owned.verifyRules(netfilter)];
  },
  remove(spec, host, isRestated) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    const closed = removeUsers(host, () => findUser(socket, spec));
    if (!isRestated && !closed.has(spec.link)) closeByLedgers(socket, spec, host);
  },
  repair(spec, host) {
    if (localhostAccessKind.verify(spec, host).length === 0) return;
    const { netfilter } = host;
    makeFilter(spec.link, host, spec);
    commitUnchanged(netfilter, () => planApply(host, spec, true).messages);
    switchTo(spec.link, "1");
    commitUnchanged(netfilter, () => owned.mend(netfilter));
  },
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    removeUsers(host, () => owned.findWhere(socket, [users], (comment) => isLost(comment, network, isValid)));
  },
  ownTable: () => nameOfTable(table),
  // The setting and the rule that guards it stay together.
  isHarmlessWhenLeft: true,
  describe: ({ link }) => `127.0.0.1 of the host over ${link || "the link that leads to the container, if one does"}`,
};

export const localhostAccess = resource(localhostAccessKind);
