/**
 * The bridge of a network, shared by its containers: ensured by ADD, left by DEL.
 *
 * It gets a MAC address of its own when it is made. Otherwise it would take the lowest among its ports, change it as
 * containers come and go, and cut off everybody who remembers the old one.
 */
import { resource, type ResourceKind, undoAfter } from "../engine/resource.ts";
import { EEXIST } from "../ffi/errno.ts";
import { isNetlinkError } from "../ffi/netlink/socket.ts";
import {
  addLink,
  bridgeKind as bridgeLink,
  delLink,
  getLink,
  type Link,
  linkMac,
  listLinks,
  setLink,
} from "../ffi/netlink/route/link.ts";
import { tryWriteSysctl } from "../ffi/sysctl.ts";
import { warn } from "../ffi/warn.ts";
import { CniError, INTERNAL } from "../cni/error.ts";
import { parseMac } from "../net/mac.ts";
import type { Host } from "../engine/host.ts";
import { undoUnlessRefused } from "./undo-unless-refused.ts";

export interface BridgeSpec {
  name: string;
  /** For a bridge that is made now; an existing one keeps its own. */
  mac: string;
  mtu?: number;
  vlanFiltering: boolean;
  promiscuous: boolean;
}

export interface MadeBridge {
  index: number;
  mac: string;
  created: boolean;
}

/** False when another ADD was faster. */
function make(spec: BridgeSpec, host: Host): boolean {
  try {
    addLink(host.route, {
      ifName: spec.name,
      kind: bridgeLink(spec.vlanFiltering ? { vlanFiltering: 1 } : {}),
      address: parseMac(spec.mac),
      mtu: spec.mtu,
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, EEXIST)) return false;
    undoUnlessRefused(error, () => removeUnused(spec, host));
    const reason = `could not add "${spec.name}": ${(error as Error).message}`;
    throw new CniError(INTERNAL, `failed to create bridge "${spec.name}": ${reason}`, "", { cause: error });
  }
}

function prepare(link: Link | undefined, spec: BridgeSpec, host: Host): Link {
  if (link === undefined) throw new CniError(INTERNAL, `bridge "${spec.name}" vanished while it was being made`);
  if (link.kind !== "bridge") {
    throw new CniError(
      INTERNAL,
      `failed to create bridge "${spec.name}": "${spec.name}" already exists but is not a bridge`,
      `it is a ${link.kind ?? "physical"} link; name another bridge in the configuration, or remove it`,
    );
  }
  if (spec.vlanFiltering && !link.vlanFiltering) {
    warn(
      `bridge ${spec.name} was there before and does not filter VLANs: "vlan" and "vlanTrunk" have no effect on it ` +
        `before "ip link set ${spec.name} type bridge vlan_filtering 1"`,
    );
  }
  // A container must not reconfigure the host by router advertisements (CVE-2020-10749).
  tryWriteSysctl(`net/ipv6/conf/${spec.name}/accept_ra`, "0");
  const promiscuous = spec.promiscuous && link.promiscuity === 0 ? true : undefined;
  if (!link.up || promiscuous) setLink(host.route, link, { up: true, promiscuous });
  return link;
}

/** Unless another link is its port, or somebody else's ADD may be about to use it. */
function removeUnused({ name }: BridgeSpec, host: Host): void {
  if (!host.isAloneWithShared()) return;
  const link = getLink(host.route, name);
  if (link === undefined) return;
  const ports = listLinks(host.route, { master: link.index });
  if (ports.every(({ master }) => master !== link.index)) delLink(host.route, name);
}

export const bridgeKind: ResourceKind<BridgeSpec, MadeBridge> = {
  kind: "bridge",
  unmade: { index: 0, mac: "", created: false },
  apply(spec, host) {
    host.useShared();
    const existing = getLink(host.route, spec.name);
    const created = existing === undefined && make(spec, host);
    try {
      const { index, mac } = prepare(existing ?? getLink(host.route, spec.name), spec, host);
      return { index, mac, created };
    } catch (error) {
      if (created) undoAfter(error, () => removeUnused(spec, host));
      throw error;
    }
  },
  undo(spec, { created }, host) {
    if (created) removeUnused(spec, host);
  },
  /** Made again, it has the MAC that this ADD chose in case there was none. */
  repair: (spec, host) => void bridgeKind.apply(spec, host),
  remove: () => {},
  verify({ name, promiscuous, vlanFiltering }, host) {
    const link = getLink(host.route, name);
    if (link === undefined) return [`bridge ${name} is missing`];
    if (link.kind !== "bridge") return [`link ${name} is a ${link.kind}, not a bridge`];
    const differences: string[] = [];
    if (!link.up) differences.push(`bridge ${name} is down`);
    if (promiscuous && link.promiscuity === 0) differences.push(`bridge ${name} is not promiscuous`);
    if (vlanFiltering && !link.vlanFiltering) differences.push(`bridge ${name} does not filter VLANs`);
    return differences;
  },
  describe: ({ name }) => `bridge ${name}`,
};

export const bridge = resource(bridgeKind);

export function bridgeMac(name: string, host: Host): string | undefined {
  return linkMac(host.route, name);
}
