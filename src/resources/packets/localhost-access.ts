/**
 * The host's own 127.0.0.1 reaches what is behind a link (`route_localnet`): a port mapping's container, say. With the
 * setting alone everybody behind that link could send to, and from, 127.0.0.0/8 of this host. So it is only there together
 * with a rule that drops such packets before anything else sees them.
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
 * The last user of a link takes the setting back, unless somebody else had made it, and then the rule. Counters know who
 * is the last: the kernel keeps how many elements refer to them. When somebody flushed the table the ledgers know.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { from, to } from "../../ffi/netlink/nftables/address-match.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { addBaseChain, type Chain } from "../../ffi/netlink/nftables/chain.ts";
import { type Expression, isSameRule } from "../../ffi/netlink/nftables/expr/expression.ts";
import { drop } from "../../ffi/netlink/nftables/expr/immediate.ts";
import { inputLink } from "../../ffi/netlink/nftables/expr/meta.ts";
import { countIn } from "../../ffi/netlink/nftables/expr/objref.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { counterUse, createCounter, delCounter } from "../../ffi/netlink/nftables/object.ts";
import { addRule, listRules } from "../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  delElement,
  getElement,
  linkNameKey,
  listElements,
  markPairKey,
  type NftSet,
} from "../../ffi/netlink/nftables/set.ts";
import { addTable, delTable, tableUse } from "../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_PRE_ROUTING, NFPROTO_IPV4 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { utf8 } from "../../ffi/libc.ts";
import { readSysctl, writeSysctl } from "../../ffi/sysctl.ts";
import { warn } from "../../ffi/warn.ts";
import type { Prefix } from "../../net/address.ts";
import { netfilterOf } from "./netfilter-socket.ts";
import { ownerComment, ownerIn, ownerKey } from "./owner-comment.ts";

export interface LocalhostAccessSpec {
  network: string;
  containerId: string;
  ifName: string;
  /** Of the host; "" when it is not known. */
  link: string;
  /** Somebody else had made the setting before ADD. */
  wasSet?: true;
  /** Told again from the configuration: ADD may have been another program's, which guards nothing. */
  restated?: boolean;
}

const table = { family: NFPROTO_IPV4, name: "patchbay_localhost" };
const users: NftSet = { table, name: "users" };
const links: NftSet = { table, name: "links" };
const prerouting: Chain = { table, name: "prerouting" };
/** Before connection tracking: the answers to the host's own packets still have the host's other address. */
const RAW = -300;
/** In the table besides the counters: the chain and both maps. */
const TABLE_USE = 3;
/** On a link's element: whether the setting is ours. */
const SET = "set by patchbay", FOUND = "was set before";

const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };
const rules: Expression[][] = [
  [...to(loopback), inputLink, countIn(links.name), drop],
  [...from(loopback), inputLink, countIn(links.name), drop],
];

function linkKey(link: string): Uint8Array {
  const key = new Uint8Array(linkNameKey.length);
  key.set(utf8(link));
  return key;
}

const setting = (link: string) => `net/ipv4/conf/${link}/route_localnet`;

/** What the first link needs. */
function frame(): NftMessage[] {
  return [
    addTable(table, "Patchbay: links over which 127.0.0.1 of the host reaches containers, and nobody reaches it"),
    addBaseChain(prerouting, { type: "filter", hook: NF_INET_PRE_ROUTING, priority: RAW }),
    createCounterMap(users, markPairKey),
    createCounterMap(links, linkNameKey),
    ...rules.map((rule) => addRule(prerouting, rule)),
  ];
}

/** `lost`: the link's element was removed by others, and with it the note whose the setting is. */
function planApply(socket: NetlinkSocket, spec: LocalhostAccessSpec, lost = false): NftMessage[] {
  const { link } = spec, comment = ownerComment(spec), key = ownerKey(spec);
  let isNew = tableUse(socket, table) === undefined;
  const before = isNew ? undefined : getElement(socket, users, key)?.counter;
  if (before !== undefined && before !== link) {
    // An earlier ADD reached the container by another link; it may have been the last user.
    removeUsers(socket, () => [key]);
    isNew = tableUse(socket, table) === undefined;
  }
  const messages = isNew ? frame() : [];
  if (isNew || counterUse(socket, table, link) === undefined) {
    // Better to take back too much than to leave it behind without the rule.
    const note = !lost && spec.wasSet && readSysctl(setting(link)) === "1" ? FOUND : SET;
    messages.push(
      createCounter(table, link),
      createElement(links, { key: linkKey(link), comment: note, counter: link }),
    );
  }
  if (before === link) return messages;
  return [...messages, createElement(users, { key, comment, counter: link })];
}

/** The users go; `takenBack` are links whose setting is to be taken back before that. */
function planRemoval(socket: NetlinkSocket, keys: readonly Uint8Array[], takenBack: Set<string>): NftMessage[] {
  const messages: NftMessage[] = [], leaving = new Map<string, number>();
  for (const key of keys) {
    const link = getElement(socket, users, key)?.counter;
    if (link === undefined) continue;
    leaving.set(link, (leaving.get(link) ?? 0) + 1);
    messages.push(delElement(users, key));
  }
  let use = TABLE_USE;
  takenBack.clear();
  for (const [link, count] of leaving) {
    // The link's own element refers to the counter too.
    if (counterUse(socket, table, link) !== count + 1) continue;
    if (getElement(socket, links, linkKey(link))?.comment === SET) takenBack.add(link);
    messages.push(delElement(links, linkKey(link)), delCounter(table, link));
    use++;
  }
  return use > TABLE_USE && tableUse(socket, table) === use ? [delTable(table)] : messages;
}

/** Without the setting no packet has to be dropped, so it goes first. Who needs it again meanwhile gets it again. */
function removeUsers(socket: NetlinkSocket, find: () => Uint8Array[]): void {
  const takenBack = new Set<string>(), switchedOff = new Set<string>();
  commitUnchanged(socket, () => {
    const messages = planRemoval(socket, find(), takenBack);
    for (const link of switchedOff) if (!takenBack.has(link)) switchTo(link, "1");
    for (const link of takenBack) {
      switchTo(link, "0");
      switchedOff.add(link);
    }
    return messages;
  });
}

/**
 * Of a table that somebody flushed nothing is left to go by: then the last one whose ledger has the link takes the
 * setting back.
 */
function takeBackWhatIsLost(socket: NetlinkSocket, spec: LocalhostAccessSpec, host: Host): void {
  const { link, wasSet, restated } = spec;
  if (link === "" || wasSet || restated || counterUse(socket, table, link) !== undefined) return;
  if (readSysctl(setting(link)) !== "1" || isUsedByOthers(spec, host)) return;
  switchTo(link, "0");
  if (counterUse(socket, table, link) !== undefined) switchTo(link, "1");
}

function isUsedByOthers({ link, ...owner }: LocalhostAccessSpec, host: Host): boolean {
  for (const other of host.recordedByOthers(localhostAccessKind.kind, owner) as LocalhostAccessSpec[]) {
    if (other.link === link && !other.wasSet) return true;
  }
  return false;
}

/** Asked before ADD: whether somebody else has made the setting. The link's element is there before the setting is. */
export function isSetByOthers(spec: LocalhostAccessSpec, host: Host): boolean {
  const socket = netfilterOf(host), key = linkKey(spec.link);
  const noted = socket && getElement(socket, links, key)?.comment;
  if (noted !== undefined) return noted === FOUND;
  return readSysctl(setting(spec.link)) === "1" && !isUsedByOthers(spec, host);
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
  verify(told, { netfilter }: Host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const { link } = spec, differences: string[] = [], of = `of table ip ${table.name}`;
    if (link === "") return [];
    if (readSysctl(setting(link)) !== "1") differences.push(`${setting(link).replaceAll("/", ".")} is not 1`);
    if (spec.restated) return differences;
    if (getElement(netfilter, links, linkKey(link)) === undefined) {
      differences.push(`${link} is not in map links ${of}`);
    }
    if (getElement(netfilter, users, ownerKey(spec))?.counter !== link) {
      differences.push(`${link} is not used by the container in map users ${of}`);
    }
    const present = listRules(netfilter, prerouting);
    if (!rules.every((rule, index) => present[index] && isSameRule(rule, present[index].expressions))) {
      differences.push(`chain ${prerouting.name} ${of} has other rules than it should`);
    }
    return differences;
  },
  remove(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    removeUsers(socket, () => [ownerKey(spec)]);
    takeBackWhatIsLost(socket, spec, host);
  },
  repair(spec, host) {
    if (localhostAccessKind.verify(spec, host).length === 0) return;
    const { netfilter } = host;
    commitUnchanged(netfilter, () => planApply(netfilter, spec, true));
    switchTo(spec.link, "1");
    commitUnchanged(netfilter, () => {
      const present = listRules(netfilter, prerouting);
      return rules.filter((rule) => !present.some(({ expressions }) => isSameRule(rule, expressions)))
        .map((rule) => addRule(prerouting, rule));
    });
  },
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    removeUsers(socket, () =>
      listElements(socket, users).filter(({ comment }) => {
        const owner = ownerIn(comment, network);
        return owner !== undefined && !isValid(owner);
      }).map(({ key }) => key));
  },
  ownTable: () => "ip patchbay_localhost",
  describe: ({ link }) => `127.0.0.1 of the host over ${link || "the link that leads to the container, if one does"}`,
};

export const localhostAccess = resource(localhostAccessKind);
