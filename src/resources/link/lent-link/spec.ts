/** The specification of a lent device, and how to recognise the device from it. */
import type { Owner } from "../../../contract/owner.ts";
import { type Link, SETTABLE_FLAGS } from "../../../ffi/netlink/route/link.ts";
import type { PacketLimits } from "../../../ffi/netlink/route/link-reading.ts";

/** The kind's name in ledgers. */
export const LENT_LINK = "lent-link";

/** What a container may set on a device besides, and takes with it when it goes back. */
export interface DeviceSettings {
  group: number;
  txQueueLength: number;
  flags: number;
  mode?: number;
  broadcast?: string;
  limits: PacketLimits;
}

/** The device as it was on the host before ADD. */
export type Device =
  & Pick<Link, "name" | "index" | "kind" | "mac" | "permanentMac" | "mtu" | "alias" | "altNames" | "up" | "parent">
  & {
    settings: DeviceSettings;
    /** Its offloads (ffi/ethtool.ts). Undefined when it has none to ask for. */
    features?: number[];
    /** The link of the host that it is upon, or the other end of a veth. */
    hostLink?: number;
    /** It was made on the host, and says so wherever it is. */
    isMadeHere?: true;
  };

/** Their links say in which namespace they were made (the kernel's get_link_net). A `geneve` does not. */
const KINDS_WITH_ORIGIN = [
  "vxlan",
  "ipip",
  "sit",
  "gre",
  "gretap",
  "erspan",
  "ip6gre",
  "ip6gretap",
  "ip6erspan",
  "ip6tnl",
  "vti",
  "vti6",
  "xfrm",
];

export interface LentLinkSpec {
  /** CNI_IFNAME is its name in the container. */
  owner: Owner;
  netnsPath: string;
  /** The cookie of the container's namespace (`Container.cookie`): the path may lead to another namespace by now. */
  netns?: string;
  /** The device before ADD, and the index it gets in the container. Undefined when another program did ADD. */
  device?: Device;
  index?: number;
  /** Used instead of `device`: its name on the host from the configuration and its MAC from prevResult, or "". */
  known?: { name: string; mac: string };
}

/** What `Device` records of a link: enough to recognise it and to restore it. */
export function asFound(found: Link, features?: number[]): Device {
  const { name, index, kind, mac, permanentMac, mtu, alias, altNames, up, parent } = found;
  const isHosts = found.linkNetnsId === undefined, hostLink = isHosts ? found.link : undefined;
  const isMadeHere = (isHosts && KINDS_WITH_ORIGIN.includes(kind ?? "")) || undefined;
  const settings = deviceSettingsOf(found);
  const base = { name, index, kind, mac, permanentMac, mtu, alias, altNames, up, parent };
  return { ...base, settings, features, hostLink, isMadeHere };
}

export function deviceSettingsOf(link: Link): DeviceSettings {
  const { flags, mode, broadcast, group = 0, txQueueLength, limits = {} } = link;
  return { group, txQueueLength, flags: flags & SETTABLE_FLAGS, mode, broadcast, limits };
}

export function hasSameHardware(link: Link, { kind, permanentMac }: Pick<Device, "kind" | "permanentMac">): boolean {
  return link.kind === kind && link.permanentMac === permanentMac;
}

/** A device without a permanent MAC must have the MAC that ADD saw: the host may have several of its kind. */
export function isDevice(link: Link, device: Device): boolean {
  return hasSameHardware(link, device) && (device.permanentMac !== undefined || link.mac === device.mac);
}

/** Its factory address and its place on the bus, which nobody can change. Before Linux 5.14 a link does not say the place. */
export function isSameHardware(link: Link, device: Device): boolean {
  return device.permanentMac !== undefined && device.parent !== undefined && link.parent === device.parent &&
    hasSameHardware(link, device);
}

/**
 * Whether a link in the container's namespace is the device that was lent. `hostId` is the number of the host's namespace
 * there: asked for a veth, and for what is upon another link.
 */
export function isLent(
  link: Link,
  { owner, netns, device, index, known }: LentLinkSpec,
  hostId: () => number | undefined = () => undefined,
): boolean {
  if (device !== undefined) {
    if (isSameHardware(link, device)) return true;
    if (!hasSameHardware(link, device)) return false;
    if (device.permanentMac === undefined && netns !== undefined) {
      // The container can delete it, and make one of its own with its name, its addresses and its index.
      if (device.hostLink !== undefined) return isUpon(link, device.hostLink, hostId);
      return link.index === index && (!device.isMadeHere || isOfHost(link, hostId));
    }
    // A namespace never reuses an index. Without the cookie it may be another namespace, where the index says little.
    const isAtIndex = link.index === index && (netns !== undefined || isDevice(link, device));
    return isAtIndex || link.alias === device.name;
  }
  const { name, mac } = known!;
  if (!link.alias) return false;
  if (link.name === owner.ifName) return name === "" || link.alias === name || link.mac === mac;
  if (name === "") return mac !== "" && link.mac === mac;
  return link.alias === name && (mac === "" || link.mac === mac);
}

function isUpon(link: Link, hostLink: number, hostId: () => number | undefined): boolean {
  return link.link === hostLink && isOfHost(link, hostId);
}

function isOfHost({ linkNetnsId }: Link, hostId: () => number | undefined): boolean {
  return linkNetnsId !== undefined && linkNetnsId === hostId();
}
