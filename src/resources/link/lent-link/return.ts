/** How a lent device gets back to the host: moved by us, or returned by the kernel when the container's namespace ends. */
import { CniError, TRY_AGAIN_LATER, undefinedOnError } from "../../../cni/error.ts";
import { askForFeatures } from "../../../ffi/ethtool.ts";
import type { Host } from "../../../contract/host.ts";
import { closeFile, identify } from "../../../ffi/files.ts";
import { awaitChange } from "../../../ffi/netlink/events.ts";
import {
  changeAltNames,
  delLinkByIndex,
  getLink,
  type Link,
  type LinkChange,
  linkIndex,
  listLinks,
  setLink,
} from "../../../ffi/netlink/route/link.ts";
import type { PacketLimits } from "../../../ffi/netlink/route/link-reading.ts";
import { netnsIdIn } from "../../../ffi/netlink/route/netns-id.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { RTNLGRP_LINK } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { openOwnNetns } from "../../../ffi/netns.ts";
import { someOtherNamespace } from "../../../ffi/other-namespaces.ts";
import { readSysctl } from "../../../ffi/sysctl.ts";
import { warn } from "../../../process/warn.ts";
import { parseMac } from "../../../net/mac.ts";
import {
  type Device,
  type DeviceSettings,
  deviceSettingsOf,
  hasSameHardware,
  isDevice,
  isLent,
  isSameHardware,
  LENT_LINK,
  type LentLinkSpec,
} from "./spec.ts";

/** The kernel returns a device shortly after its namespace ends, or not at all. */
const RETURN_WAIT_MS = 5000;

/** Links that can be upon another: they would go on using the device where it goes. */
const KINDS_UPON = ["macvlan", "macvtap", "ipvlan", "ipvtap", "vlan"];

/** Moves the device to the host. Returns false when it is not in the socket's namespace. */
export function takeBack(spec: LentLinkSpec, socket: NetlinkSocket, host: Host): boolean {
  const home = openOwnNetns();
  try {
    const links = listLinks(socket), link = lentAmong(links, spec, socket, home);
    if (link === undefined) return false;
    const name = spec.device?.name ?? link.alias!;
    for (const upon of links) {
      const isUpon = upon.link === link.index && upon.linkNetnsId === undefined &&
        KINDS_UPON.includes(upon.kind ?? "");
      if (isUpon) delLinkByIndex(socket, upon);
    }
    resetSettings(socket, link, spec.device);
    if (spec.device === undefined) {
      // They are not known, and the kernel moves no link with one that the other namespace has.
      const inTheWay = link.altNames.filter((each) => each === name || linkIndex(host.route, each) !== undefined);
      tryToReset(link, "alternative names", () => changeAltNames(socket, link, "del", inTheWay));
    }
    // Rename it here if possible, so that programs that watch the host's devices see it appear under its own name.
    const isFree = !links.some((one) => one !== link && (one.name === name || one.altNames.includes(name)));
    if (link.name !== name && isFree) tryToReset(link, "name", () => setLink(socket, link, { ifName: name }));
    const isTaken = linkIndex(host.route, name) !== undefined;
    if (isTaken) {
      warn(`"${name}" is another link's name by now: the device comes back under one that is free, with it as alias`);
    }
    const change = isTaken ? { ifName: "dev%d", alias: name } : { ifName: name, alias: spec.device?.alias ?? "" };
    setLink(socket, link, { ...change, netnsFd: home });
    if (spec.device !== undefined) settle(spec.device, isTaken, host);
    return true;
  } finally {
    closeFile(home);
  }
}

/** Among several, the index decides: without a factory address, the container can set names and aliases, but no index. */
export function lentAmong(
  links: readonly Link[],
  spec: LentLinkSpec,
  socket: NetlinkSocket,
  home: number,
): Link | undefined {
  let hostId: { id: number | undefined } | undefined;
  const candidates = links.filter((link) =>
    isLent(link, spec, () => (hostId ??= { id: netnsIdIn(socket, home) }).id)
  );
  return candidates.find(({ index }) => index === spec.index) ??
    candidates.find(({ name }) => name === spec.owner.ifName) ?? candidates[0];
}

/** Settings once more: before, the container could change them, and the name that it gave may have been an alternative one. */
function settle(device: Device, isTaken: boolean, host: Host): void {
  const link = isTaken
    ? listLinks(host.route).find((one) => one.alias === device.name && hasSameHardware(one, device))
    : getLink(host.route, device.name);
  if (link === undefined) return;
  resetSettings(host.route, link, device);
  const { features } = device;
  if (features !== undefined) tryToReset(link, "offloads", () => askForFeatures(link.name, features));
}

/** Restores name and settings of a device that the kernel has returned. Returns false when it is not on the host. */
export function restoreReturned(spec: LentLinkSpec, host: Host): boolean {
  const link = findReturned(spec, host);
  if (link === undefined) return false;
  const { device } = spec, name = device?.name ?? link.alias!;
  if (device !== undefined) resetSettings(host.route, link, device);
  const holder = link.name === name ? undefined : linkIndex(host.route, name);
  const isTaken = holder !== undefined && holder !== link.index;
  if (isTaken) {
    warn(`"${name}" is another link's name by now: the device gets another one, with "${name}" as alias`);
    // The container may have chosen the name that it has: nobody on the host may take it for something else.
    const isNeutral = device === undefined || /^dev[0-9]+$/.test(link.name);
    setLink(host.route, link, isNeutral ? { alias: name } : { ifName: "dev%d", alias: name });
  } else {
    if (device === undefined) setLink(host.route, link, { up: false });
    setLink(host.route, link, { ifName: name, alias: device?.alias ?? "" });
  }
  if (device !== undefined) settle(device, isTaken, host);
  return true;
}

/** The device under its own name on the host. */
export function atHome(device: Device, host: Host): Link | undefined {
  const link = getLink(host.route, device.name);
  return link !== undefined && isDevice(link, device) ? link : undefined;
}

/** The kernel destroys namespaces asynchronously, so a device whose namespace has ended may still be on its way. */
export function awaitReturn(spec: LentLinkSpec, device: Device, host: Host, isNamespaceThere = false): void {
  const { name, parent } = device;
  if (parent === undefined || !isPlugged(parent) || isLentAgain(spec, device, host)) return;
  if (!isFirstNamespace()) {
    warn(`"${name}" went back to the machine's first network namespace, which is not this one`);
    return;
  }
  const isBack = () => restoreReturned(spec, host) || atHome(device, host) !== undefined;
  if (awaitChange(RTNLGRP_LINK, RETURN_WAIT_MS, isBack)) return;
  throw new CniError(
    TRY_AGAIN_LATER,
    isNamespaceThere
      ? `"${name}" is neither in the container's network namespace nor on the host`
      : `"${name}" is still in the container's network namespace`,
    isNamespaceThere
      ? "the container may have moved it to another namespace; the device comes back when that ends"
      : `${spec.netnsPath} is gone, but something holds the namespace; the device comes back when it ends`,
  );
}

/** Takes back what the container has moved to a namespace of its own. Returns false when it is in none that can be seen. */
export function takeFromHiding(
  spec: LentLinkSpec,
  device: Device,
  container: number | undefined,
  host: Host,
): boolean {
  if (isLentAgain(spec, device, host)) return false;
  return someOtherNamespace(container, ({ socket, home, holder, isContainers }) => {
    const link = lentAmong(listLinks(socket), spec, socket, home);
    // Elsewhere an index and an alias say nothing.
    if (link === undefined || (device.hostLink === undefined && !isSameHardware(link, device))) return false;
    if (isContainers) return takeBack(spec, socket, host);
    throw new CniError(
      TRY_AGAIN_LATER,
      `"${device.name}" is in a network namespace of ${holder}`,
      "it is not known whether that is the container's; move the device to the host, or end what holds it",
    );
  });
}

/** ADD made its name on the host its alias. The container may have changed that and its name, but not its hardware. */
function findReturned({ device, known }: LentLinkSpec, host: Host): Link | undefined {
  const name = device?.name ?? known!.name;
  // Without a known name, an alias may be any text that an operator wrote there.
  if (name === "") return undefined;
  const all = listLinks(host.route), links = all.filter(({ alias }) => alias === name);
  if (device === undefined) {
    const isLikely = ({ kind, mac }: Link) => kind === undefined || mac === known!.mac;
    return links.find((link) => link.name !== name && isLikely(link));
  }
  // A link that is up again is in use by whoever set it up.
  const exact = links.find((link) => isDevice(link, device)) ??
    all.find((link) => isSameHardware(link, device) && !link.up && isAltered(link, device));
  if (exact !== undefined || linkIndex(host.route, name) !== undefined) return exact;
  return links.find((link) => hasSameHardware(link, device));
}

function isAltered(link: Link, { name, alias, altNames }: Device): boolean {
  return link.name !== name || (link.alias ?? "") !== (alias ?? "") ||
    !Bun.deepEquals([...link.altNames].sort(), [...altNames].sort());
}

/** Takes the device down and undoes what the container may have changed. Only taking it down must succeed. */
function resetSettings(socket: NetlinkSocket, link: Link, device: Device | undefined): void {
  if (link.up || device === undefined) setLink(socket, link, { up: false });
  if (device === undefined) return;
  const set = (change: LinkChange) => () => setLink(socket, link, change);
  if (link.mac !== device.mac) tryToReset(link, `MAC ${device.mac}`, set({ address: parseMac(device.mac) }));
  if (link.mtu !== device.mtu) tryToReset(link, `MTU ${device.mtu}`, set({ mtu: device.mtu }));
  resetAltNames(socket, link, device.altNames);
  resetOthers(link, device.settings, set);
}

function resetOthers(link: Link, wanted: DeviceSettings, set: (change: LinkChange) => () => void): void {
  const { limits, ...now } = deviceSettingsOf(link);
  for (const key of ["group", "txQueueLength", "flags", "mode"] as const) {
    const before = wanted[key];
    if (before !== undefined && now[key] !== before) tryToReset(link, `${key} ${before}`, set({ [key]: before }));
  }
  const { broadcast } = wanted;
  if (broadcast !== undefined && now.broadcast !== broadcast) {
    tryToReset(link, `broadcast address ${broadcast}`, set({ broadcast: parseMac(broadcast) }));
  }
  const isSame = Object.entries(wanted.limits).every(([key, value]) => limits[key as keyof PacketLimits] === value);
  if (!isSame) tryToReset(link, "packet sizes", set(wanted.limits));
}

/** The host may have links of the names that the container has chosen, or get some: the device would be taken for them. */
function resetAltNames(socket: NetlinkSocket, link: Link, before: readonly string[]): void {
  const added = link.altNames.filter((name) => !before.includes(name));
  const removed = before.filter((name) => !link.altNames.includes(name));
  tryToReset(link, "alternative names", () => changeAltNames(socket, link, "del", added));
  tryToReset(link, "alternative names", () => changeAltNames(socket, link, "add", removed));
}

/** Only warns: a device that comes back with other settings is better than one that does not come back. */
function tryToReset(link: Link, setting: string, reset: () => void): void {
  try {
    reset();
  } catch (error) {
    warn(`"${link.name}" does not get back its ${setting}: ${(error as Error).message}`);
  }
}

function isLentAgain(spec: LentLinkSpec, { name, permanentMac }: Device, host: Host): boolean {
  return host.recordedByOthers(LENT_LINK, spec.owner).some((other) => {
    const { device } = other as LentLinkSpec;
    return device?.name === name && device.permanentMac === permanentMac;
  });
}

function isPlugged(parent: string): boolean {
  return undefinedOnError(() => identify(`/sys/bus/${parent}`)) !== undefined;
}

/**
 * Whether this is the machine's first namespace, to which the kernel returns physical devices. Only that one has the
 * sysctls of the whole machine.
 */
function isFirstNamespace(): boolean {
  return readSysctl("net/core/netdev_max_backlog") !== undefined;
}
