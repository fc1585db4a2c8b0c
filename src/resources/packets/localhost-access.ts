/**
 * The host's own 127.0.0.1 reaches what is behind a link, such as the container of a port mapping (`route_localnet`). With
 * the setting alone, everybody behind that link could send to and from 127.0.0.0/8 of this host. So the setting is only made
 * together with a rule that drops such packets before anything else sees them, in a table of our own (owned-table.ts).
 *
 *     table ip patchbay_localhost {
 *       counter br0 { }
 *       map users { type mark . mark : counter; elements = { 0x… . 0x… comment "id: …" : "br0" } }
 *       map links { type ifname : counter; elements = { "br0" comment "set" : "br0" } }
 *       chain prerouting {
 *         type filter hook prerouting priority raw; policy accept;
 *         ip daddr 127.0.0.0/8 counter name iifname map @links drop
 *         ip saddr 127.0.0.0/8 counter name iifname map @links drop
 *       }
 *     }
 *
 * The last user of a link takes the setting back, unless somebody else had made it before, and then removes the link's
 * element. When somebody flushed the table, the ledgers tell who is the last.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { from, inputLink, to } from "../../ffi/netlink/nftables/packet-match.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { type Chain, createCounter, nameOf } from "../../ffi/netlink/nftables/table.ts";
import { drop } from "../../ffi/netlink/nftables/action.ts";
import { countIn } from "../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { createElement, getElement, linkNameKey, markPairKey, type NftSet } from "../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_PRE_ROUTING } from "../../ffi/netlink/uapi/nf-tables.ts";
import { utf8 } from "../../ffi/libc.ts";
import { readSysctl, writeSysctl } from "../../ffi/sysctl.ts";
import { warn } from "../../ffi/warn.ts";
import { parseAddress, type Prefix } from "../../net/address.ts";
import { netfilterOf } from "./shared/netfilter-socket.ts";
import { type FoundElement, ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { isLost, ownerComment, ownerKey } from "./shared/owner-comment.ts";

interface LocalhostAccessSpec extends Owner {
  /** Of the host; "" when it is not known. */
  link: string;
  /** Somebody else had made the setting before ADD. */
  wasSet?: true;
}

const table = ownTables["localhost-access"];
const users: NftSet = { table, name: "users" };
const links: NftSet = { table, name: "links" };
const prerouting: Chain = { table, name: "prerouting" };
/** Before connection tracking: the answers to the host's own packets still have the host's other address. */
const RAW = -300;
/** The comment of a link's element: whether the setting is ours. */
const SET = "set by patchbay", FOUND = "was set before";

const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };

const owned = new OwnedTable({
  table,
  chains: [{
    chain: prerouting,
    hook: { type: "filter", hook: NF_INET_PRE_ROUTING, priority: RAW },
    rules: {
      chain: prerouting,
      rules: [
        [...to(loopback), inputLink, countIn(links.name), drop],
        [...from(loopback), inputLink, countIn(links.name), drop],
      ],
      replaces: () => true,
    },
  }],
  sets: [
    { set: users, key: markPairKey, holds: "counters" },
    { set: links, key: linkNameKey, holds: "counters" },
  ],
  // The counter of a link has the link's name.
  groups: { elements: (link) => [{ set: links, key: linkKey(link), refers: true }] },
});

function linkKey(link: string): Uint8Array {
  const key = new Uint8Array(linkNameKey.length);
  key.set(utf8(link));
  return key;
}

const setting = (link: string) => `net/ipv4/conf/${link}/route_localnet`;

/** `lost`: others removed the link's element, and with it the note whether the setting is ours. */
function planApply(socket: NetlinkSocket, spec: LocalhostAccessSpec, lost = false): NftMessage[] {
  const { link } = spec, comment = ownerComment(spec), key = ownerKey(spec);
  let isNew = !owned.exists(socket);
  const before = isNew ? undefined : getElement(socket, users, key)?.counter;
  if (before !== undefined && before !== link) {
    // An earlier ADD reached the container by another link. It may have been that link's last user.
    removeUsers(socket, () => findUser(socket, spec));
    isNew = !owned.exists(socket);
  }
  const messages = isNew ? owned.frame() : [];
  if (isNew || owned.counterUse(socket, link) === undefined) {
    // Taking back a setting of others is better than leaving ours behind without the rule.
    const note = !lost && spec.wasSet && readSysctl(setting(link)) === "1" ? FOUND : SET;
    messages.push(
      createCounter(table, link),
      createElement(links, { key: linkKey(link), comment: note, counter: link }),
    );
  }
  if (before === link) return messages;
  return [...messages, createElement(users, { key, comment, counter: link })];
}

function findUser(socket: NetlinkSocket, spec: LocalhostAccessSpec): FoundElement[] {
  return owned.find(socket, [{ set: users, key: ownerKey(spec) }], ownerComment(spec));
}

/**
 * Takes back the setting of links that lose their last user before it removes them: without the setting, no packet has to
 * be dropped. When the plan runs again because somebody has come to use the link meanwhile, the setting is made again.
 */
function removeUsers(socket: NetlinkSocket, find: () => readonly FoundElement[]): void {
  const switchedOff = new Set<string>();
  commitUnchanged(socket, () => {
    const removed = find(), unused = owned.unusedWithout(socket, removed);
    const ours = unused.filter((link) => getElement(socket, links, linkKey(link))?.comment === SET);
    for (const link of switchedOff) if (!ours.includes(link)) switchTo(link, "1");
    for (const link of ours) {
      switchTo(link, "0");
      switchedOff.add(link);
    }
    return owned.planRemoval(socket, removed, unused);
  });
}

/** When somebody flushed the table, the last attachment whose ledger has the link takes the setting back. */
function takeBackByLedgers(socket: NetlinkSocket, spec: LocalhostAccessSpec, host: Host): void {
  const { link, wasSet } = spec;
  if (link === "" || wasSet || owned.counterUse(socket, link) !== undefined) return;
  if (readSysctl(setting(link)) !== "1" || isUsedByOthers(spec, host)) return;
  switchTo(link, "0");
  // Somebody may have come to use the link meanwhile.
  if (owned.counterUse(socket, link) !== undefined) switchTo(link, "1");
}

function isUsedByOthers({ link, ...owner }: LocalhostAccessSpec, host: Host): boolean {
  for (const other of host.recordedByOthers(localhostAccessKind.kind, owner) as LocalhostAccessSpec[]) {
    if (other.link === link && !other.wasSet) return true;
  }
  return false;
}

/** Whether somebody else has made the setting; for ADD. Our own is only made after the link's element. */
export function isSetByOthers(spec: LocalhostAccessSpec, host: Host): boolean {
  if (readSysctl(setting(spec.link)) !== "1") return false;
  const socket = netfilterOf(host), key = linkKey(spec.link);
  const noted = socket && getElement(socket, links, key)?.comment;
  return noted === undefined ? !isUsedByOthers(spec, host) : noted === FOUND;
}

/** Whether 127.0.0.0/8 reaches a port that is published on this address of the host; without one, it is published on all. */
export function isForLocalhost({ hostIp }: { hostIp?: string }): boolean {
  if (hostIp === undefined || hostIp === "0.0.0.0") return true;
  const bytes = parseAddress(hostIp)!;
  return bytes.length === 4 && bytes[0] === 127;
}

function switchTo(link: string, value: string): void {
  const present = readSysctl(setting(link));
  if (present !== undefined && present !== value) writeSysctl(setting(link), value);
}

export const localhostAccessKind: ResourceKind<LocalhostAccessSpec> = {
  kind: "localhost-access",
  unmade: undefined,
  apply(spec, host) {
    try {
      if (!commitUnchanged(host.netfilter, () => planApply(host.netfilter, spec))) {
        return warn("127.0.0.1 does not reach the container: without nf_tables that would not be safe");
      }
      switchTo(spec.link, "1");
    } catch (error) {
      undoAfter(error, () => localhostAccessKind.remove(spec, host));
      throw error;
    }
  },
  verify(spec, { netfilter }, isRestated) {
    const { link } = spec;
    if (link === "") return [];
    const differences: string[] = [];
    if (readSysctl(setting(link)) !== "1") differences.push(`${setting(link).replaceAll("/", ".")} is not 1`);
    // Restated, the ADD may have been the reference plugin's, which drops no packets.
    if (isRestated) return differences;
    if (getElement(netfilter, links, linkKey(link)) === undefined) {
      differences.push(`${link} is not in map links of table ${owned.name}`);
    }
    if (getElement(netfilter, users, ownerKey(spec))?.counter !== link) {
      differences.push(`${link} is not used by the container in map users of table ${owned.name}`);
    }
    return [...differences, ...owned.verifyRules(netfilter)];
  },
  remove(spec, host, isRestated) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    removeUsers(socket, () => findUser(socket, spec));
    if (!isRestated) takeBackByLedgers(socket, spec, host);
  },
  repair(spec, host) {
    if (localhostAccessKind.verify(spec, host).length === 0) return;
    const { netfilter } = host;
    commitUnchanged(netfilter, () => planApply(netfilter, spec, true));
    switchTo(spec.link, "1");
    commitUnchanged(netfilter, () => owned.mend(netfilter));
  },
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    removeUsers(socket, () => owned.findWhere(socket, [users], (comment) => isLost(comment, network, isValid)));
  },
  ownTable: () => nameOf(table),
  // The setting and the rule that guards it stay together.
  isHarmlessWhenLeft: true,
  describe: ({ link }) => `127.0.0.1 of the host over ${link || "the link that leads to the container, if one does"}`,
};

export const localhostAccess = resource(localhostAccessKind);
