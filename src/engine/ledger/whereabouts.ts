/**
 * Where the network namespace of an attachment is. This is the one rule by which a container is gone. DEL asks it where
 * attachments claim the same thing.
 *
 * A path that leads nowhere proves nothing: the namespace may be mounted elsewhere, or belong to a process that has no
 * number here. So a container is gone only when nothing on the host shows that it lives.
 */
import { undefinedOnError } from "../../cni/error.ts";
import type { Ruleset } from "../../net/netfilter/ruleset.ts";
import type { HostEnd, HostLook, HostSide } from "../../contract/resource.ts";
import type { AskNetfilter } from "../../ffi/netlink/nftables/whole-ruleset.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import { farEnd } from "../../ffi/netlink/route/far-end.ts";
import { listLinks } from "../../ffi/netlink/route/link.ts";
import { RTNLGRP_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { cookiesInSight, ownSight } from "../../ffi/netns-in-sight.ts";
import { loadKind } from "../../resources/table.ts";
import { onHost } from "../on-host.ts";
import { isOtherNamespace, type Opened } from "../open-host.ts";
import type { LedgerRecord } from "./record.ts";

/**
 * `in place`: its path leads to it. `elsewhere`: it lives, or another network namespace of the host is the one to judge
 * that. `unknown`: no record says which namespace it is, or this process may not see it.
 */
export type Whereabouts = "in place" | "elsewhere" | "gone" | "unknown";

export interface Traces {
  records: readonly LedgerRecord[];
  /** What its path leads to; undefined when that is no network namespace. */
  found: Opened | undefined;
  /** The link of ADD's result is in what was found. */
  isConfirmed?: boolean;
  /** The links on the host of ADD's result. */
  hostEnds?: readonly HostEnd[];
  /** In the attachment's record; "" when none says where its namespace is. */
  netnsPath?: string;
}

export function whereabouts(
  { records, found, isConfirmed = false, hostEnds = [], netnsPath }: Traces,
  view: HostView,
): Whereabouts {
  const adds = records.flatMap((record) => record.adds);
  if (adds.some(({ header }) => view.isOtherHost(header.hostNetns))) return "elsewhere";
  if (netnsPath === "") return "unknown";
  if (found !== undefined) {
    if (isConfirmed || records.some(({ header }) => !isOtherNamespace(found, header.netns))) return "in place";
    if (records.length === 0) return "unknown";
  }
  if (adds.some(({ header }) => view.isInSight(header.netns))) return "elsewhere";
  const ends = [
    ...hostEnds,
    ...adds.flatMap(({ entries }) => entries.flatMap((entry) => hostSideOf(entry).end ?? [])),
  ];
  if (view.showsLife(ends)) return "elsewhere";
  if (ends.length > 0) return "gone";
  // Without a pair, only a process that sees what ADD saw can tell. A process of the container may have ended, and others go on.
  const isOfProcess = adds.length === 0 && netnsPath?.startsWith("/proc/") === true;
  return isOfProcess || adds.some(({ header }) => view.hasOtherSight(header.sight)) ? "unknown" : "gone";
}

/** Returns none for a damaged specification. */
export function hostSideOf({ kind, spec }: { kind: string; spec: unknown }): HostSide {
  try {
    return loadKind(kind)?.hostSide?.(spec) ?? {};
  } catch {
    return {};
  }
}

/** A namespace whose sockets have been closed ends a moment after its last process and mount. */
const ENDING_MS = 1000;

/** What the host shows at one moment. Each thing is looked at when it is first asked for, and once. */
export class HostView implements HostLook {
  private own: { cookie: string | undefined } | undefined;
  private pairs: HostEnd[] | undefined;
  private cookies: Set<string> | undefined;
  private sight: string | undefined;
  private readonly found = new Map<string, unknown>();

  /** `waits`: for namespaces that are ending, once and not for long. */
  constructor(private waits = true) {}

  /** `cookie`: of the network namespace that ADD had for the host's. */
  isOtherHost(cookie: string | undefined): boolean {
    if (cookie === undefined) return false;
    this.own ??= onHost(({ cookie }) => ({ cookie }));
    return this.own.cookie !== undefined && this.own.cookie !== cookie;
  }

  /** `sight`: of the process of ADD. */
  hasOtherSight(sight: string | undefined): boolean {
    return sight !== undefined && (this.sight ??= ownSight()) !== sight;
  }

  /** The kernel removes the pair with the namespace. */
  showsLife(ends: readonly HostEnd[]): boolean {
    const lives = () => this.pairs!.some((pair) => ends.some((end) => isSamePair(pair, end)));
    this.pairs ??= onHost(livingPairs);
    if (!lives()) return false;
    if (!this.waits) return true;
    this.waits = false;
    return !awaitChange(RTNLGRP_LINK, ENDING_MS, () => {
      this.pairs = onHost(livingPairs);
      return !lives();
    });
  }

  rules(): Ruleset | undefined {
    return this.once("rules", () => {
      const { readAllRules } = require("../../ffi/all-rules.ts") as typeof import("../../ffi/all-rules.ts");
      const ask: AskNetfilter = (question) => onHost(({ netfilter }) => question(netfilter));
      return undefinedOnError(() => readAllRules(ask));
    });
  }

  once<Found>(key: string, work: () => Found): Found {
    return this.found.getOrInsertComputed(key, work) as Found;
  }

  isInSight(cookie: string | undefined): boolean {
    return cookie !== undefined && (this.cookies ??= cookiesInSight()).has(cookie);
  }
}

/**
 * Two of the three have to agree: a name may be another one's by now, a bridge has the MAC address of one of its ports, and a
 * container may change its own. What the other end has is not always known.
 */
function isSamePair(pair: HostEnd, { name, mac, farMac }: HostEnd): boolean {
  const isOwnMac = mac !== "" && pair.mac === mac, isOtherFar = pair.farMac !== "" && pair.farMac !== farMac;
  if (name === pair.name) return isOwnMac || !isOtherFar;
  return isOwnMac && (farMac === "" || !isOtherFar);
}

/** The links of this namespace whose other end is in one that has not ended. */
function livingPairs({ route }: Opened): HostEnd[] {
  return listLinks(route).flatMap((link) => {
    const end = link.kind === "veth" ? farEnd(route, link) : undefined;
    return end === undefined ? [] : [{ name: link.name, mac: link.mac, farMac: end.mac }];
  });
}
