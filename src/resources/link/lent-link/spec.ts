/** The specification of a lent device, and how to recognise the device from it. */
import type { Owner } from "../../../contract/owner.ts";
import type { Link } from "../../../ffi/netlink/route/link.ts";

/** The kind's name in ledgers. */
export const LENT_LINK = "lent-link";

/** The device as it was on the host before ADD. Older ledgers do not know its alternative names. */
export type Device =
  & Pick<Link, "name" | "index" | "kind" | "mac" | "permanentMac" | "mtu" | "alias" | "up" | "parent">
  & Partial<Pick<Link, "altNames">>;

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
export function asFound({ name, index, kind, mac, permanentMac, mtu, alias, altNames, up, parent }: Link): Device {
  return { name, index, kind, mac, permanentMac, mtu, alias, altNames, up, parent };
}

export function hasSameHardware(link: Link, { kind, permanentMac }: Pick<Device, "kind" | "permanentMac">): boolean {
  return link.kind === kind && link.permanentMac === permanentMac;
}

/** A device without a permanent MAC must have the MAC that ADD saw: the host may have several of its kind. */
export function isDevice(link: Link, device: Device): boolean {
  return hasSameHardware(link, device) && (device.permanentMac !== undefined || link.mac === device.mac);
}

/** Whether a link in the container's namespace is the device that was lent. */
export function isLent(link: Link, { owner, netns, device, index, known }: LentLinkSpec): boolean {
  if (device !== undefined) {
    if (!hasSameHardware(link, device)) return false;
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
