/** Facts of a namespace, read of the kernel. Nothing is changed: every message is a question. */
import { type ListeningSocket, listListening } from "../ffi/netlink/diag/listening.ts";
import { readAllRules } from "../ffi/all-rules.ts";
import type { AskNetfilter } from "../ffi/netlink/nftables/whole-ruleset.ts";
import { listAddresses } from "../ffi/netlink/route/address.ts";
import { listPortVlans } from "../ffi/netlink/route/bridge.ts";
import { type Link, listLinks } from "../ffi/netlink/route/link.ts";
import { listFilters, listQdiscs } from "../ffi/netlink/tc/queueing.ts";
import { TC_H_FOR_EGRESS, TC_H_FOR_INGRESS } from "../ffi/netlink/uapi/traffic-control.ts";
import { netnsIdIn } from "../ffi/netlink/route/netns-id.ts";
import { countNeighbours, findNeighbour, portBehind } from "../ffi/netlink/route/neighbour.ts";
import { rulesOfOthers } from "../ffi/netlink/route/rule.ts";
import { AF_INET, AF_INET6 } from "../ffi/socket/socket.ts";
import { askRoute, askSource, type RouteQuestion } from "../ffi/netlink/route/route-question.ts";
import {
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  NETLINK_SOCK_DIAG,
  type NetlinkSocket,
  openNetlink,
} from "../ffi/netlink/socket.ts";
import { readSysctl } from "../ffi/sysctl.ts";
import { formatAddress } from "../net/address.ts";
import type { ContainerName, NetnsFacts } from "./facts.ts";

/** Where filters see what comes in, and what leaves. */
const FILTER_PARENTS = [0xffff0000, TC_H_FOR_INGRESS, TC_H_FOR_EGRESS];

/** Runs work with the thread in the namespace. */
export type Inside = <T>(work: () => T) => T;

export class Reading implements NetnsFacts {
  private readonly answers = new Map<string, unknown>();
  private readonly sockets = new Map<number, NetlinkSocket>();

  constructor(
    readonly label: string,
    readonly inside: Inside,
    readonly container?: ContainerName,
  ) {}

  links() {
    return this.once("links", () => listLinks(this.routing));
  }

  netnsId(netnsFd: number) {
    return this.once("netns id", () => netnsIdIn(this.routing, netnsFd));
  }

  addresses() {
    return this.once("addresses", () => listAddresses(this.routing, 0));
  }

  route(question: RouteQuestion) {
    const { destination, source, inputLink, mark, protocol, sourcePort, destinationPort } = question;
    const ends = [destination, source].map((each) => each && formatAddress(each));
    const key = ["route", ...ends, inputLink, mark, protocol, sourcePort, destinationPort].join(" ");
    return this.once(key, () => askRoute(this.routing, question));
  }

  sourceFor(destination: Uint8Array, { index }: Pick<Link, "index">) {
    return this.once(
      `source ${index} ${formatAddress(destination)}`,
      () => askSource(this.routing, destination, index),
    );
  }

  routingRules(family: 4 | 6) {
    const number = family === 4 ? AF_INET : AF_INET6;
    return this.once(`routing rules ${family}`, () => rulesOfOthers(this.routing, number));
  }

  neighbours(family: 4 | 6) {
    return this.once(`neighbours ${family}`, () => countNeighbours(this.routing, family));
  }

  neighbour(link: Link, address: Uint8Array) {
    return this.once(
      `neighbour ${link.index} ${formatAddress(address)}`,
      () => findNeighbour(this.routing, link, address),
    );
  }

  portBehind(bridge: Link, mac: string, vlan?: number) {
    return this.once(`port ${bridge.index} ${mac} ${vlan}`, () => portBehind(this.routing, bridge, mac, vlan));
  }

  filtered() {
    return this.once("filters", () => {
      const places = listQdiscs(this.routing).filter(({ kind }) => kind === "ingress" || kind === "clsact");
      const filtered = places.filter(({ linkIndex: index }) =>
        FILTER_PARENTS.some((parent) => listFilters(this.routing, { index, name: String(index) }, parent).length > 0)
      );
      return new Set(filtered.map(({ linkIndex }) => linkIndex));
    });
  }

  vlansOf(port: Link) {
    return this.once(`vlans ${port.index}`, () => listPortVlans(this.routing, port));
  }

  rules() {
    const ask: AskNetfilter = (question) => {
      try {
        return question(this.socket(NETLINK_NETFILTER));
      } catch (error) {
        // The rest of an answer may still come to it.
        this.sockets.get(NETLINK_NETFILTER)?.close();
        this.sockets.delete(NETLINK_NETFILTER);
        throw error;
      }
    };
    return this.once("rules", () => this.inside(() => readAllRules(ask, true)));
  }

  sysctl(key: string) {
    return this.once(`sysctl ${key}`, () => this.inside(() => readSysctl(key)));
  }

  listening(family: 4 | 6, protocol: number): readonly ListeningSocket[] {
    return this.once(
      `listening ${family} ${protocol}`,
      () => listListening(this.socket(NETLINK_SOCK_DIAG), family, protocol),
    );
  }

  /** For what only a report lists. */
  ask<T>(protocol: number, question: (socket: NetlinkSocket) => T): T {
    return question(this.socket(protocol));
  }

  close(): void {
    for (const socket of this.sockets.values()) socket.close();
    this.sockets.clear();
  }

  private get routing(): NetlinkSocket {
    return this.socket(NETLINK_ROUTE);
  }

  private socket(protocol: number): NetlinkSocket {
    return this.sockets.getOrInsertComputed(protocol, () => this.inside(() => openNetlink(protocol)));
  }

  private once<Answer>(key: string, work: () => Answer): Answer {
    return this.answers.getOrInsertComputed(key, work) as Answer;
  }
}
