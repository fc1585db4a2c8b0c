/** How a lent device gets back to the host: moved by us, or returned by the kernel when the container's namespace ends. */
import { CniError, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { closeFile, identify } from "../../../ffi/files.ts";
import { awaitChange } from "../../../ffi/netlink/events.ts";
import {
  changeAltNames,
  getLink,
  type Link,
  type LinkChange,
  linkIndex,
  listLinks,
  setLink,
} from "../../../ffi/netlink/route/link.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { RTNLGRP_LINK } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { openOwnNetns } from "../../../ffi/netns.ts";
import { readSysctl } from "../../../ffi/sysctl.ts";
import { warn } from "../../../ffi/warn.ts";
import { parseMac } from "../../../net/mac.ts";
import { type Device, hasSameHardware, isDevice, isLent, LENT_LINK, type LentLinkSpec } from "./spec.ts";

/** The kernel returns a device shortly after its namespace ends, or not at all. */
const RETURN_WAIT_MS = 5000;

/** Moves the device to the host. Returns false when it is not in the socket's namespace. */
export function takeBack(spec: LentLinkSpec, socket: NetlinkSocket, host: Host): boolean {
  const links = listLinks(socket);
  const candidates = links.filter((link) => isLent(link, spec));
  // Among several, the index decides: the container can set names and aliases, but no index.
  const link = candidates.find(({ index }) => index === spec.index) ??
    candidates.find(({ name }) => name === spec.owner.ifName) ?? candidates[0];
  if (link === undefined) return false;
  const name = spec.device?.name ?? link.alias!;
  const home = openOwnNetns();
  try {
    resetSettings(socket, link, spec.device);
    // Rename it here if possible, so that programs that watch the host's devices see it appear under its own name.
    if (link.name !== name && !links.some((one) => one.name === name)) setLink(socket, link, { ifName: name });
    const to = { netnsFd: home };
    if (linkIndex(host.route, name) === undefined) {
      setLink(socket, link, { ...to, ifName: name, alias: spec.device?.alias ?? "" });
    } else {
      warn(`"${name}" is another link's name by now: the device comes back under one that is free, with it as alias`);
      setLink(socket, link, { ...to, ifName: "dev%d", alias: name });
    }
  } finally {
    closeFile(home);
  }
  return true;
}

/** Restores name and settings of a device that the kernel has returned. Returns false when it is not on the host. */
export function restoreReturned(spec: LentLinkSpec, host: Host): boolean {
  const link = findReturned(spec, host);
  if (link === undefined) return false;
  const { device } = spec, name = link.alias!;
  const isTaken = link.name !== name && linkIndex(host.route, name) !== undefined;
  if (isTaken) {
    warn(`"${name}" is another link's name by now: the device stays "${link.name}", with "${name}" as alias`);
  }
  if (!isTaken || device !== undefined) resetSettings(host.route, link, device);
  if (!isTaken) setLink(host.route, link, { ifName: name, alias: device?.alias ?? "" });
  return true;
}

/** The device under its own name on the host. */
export function atHome(device: Device, host: Host): Link | undefined {
  const link = getLink(host.route, device.name);
  return link !== undefined && isDevice(link, device) ? link : undefined;
}

/** The kernel destroys namespaces asynchronously, so a device whose namespace has ended may still be on its way. */
export function awaitReturn(spec: LentLinkSpec, device: Device, host: Host): void {
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
    `"${name}" is still in the container's network namespace`,
    `${spec.netnsPath} is gone, but something holds the namespace; the device comes back when it ends`,
  );
}

/** A returned device has its name on the host as its alias, and may have another name. */
function findReturned({ device, known }: LentLinkSpec, host: Host): Link | undefined {
  const name = device?.name ?? known!.name;
  // Without a known name, an alias may be any text that an operator wrote there.
  if (name === "") return undefined;
  const links = listLinks(host.route).filter(({ alias }) => alias === name);
  if (device === undefined) {
    const isLikely = ({ kind, mac }: Link) => kind === undefined || mac === known!.mac;
    return links.find((link) => link.name !== name && isLikely(link));
  }
  const exact = links.find((link) => isDevice(link, device));
  if (exact !== undefined || linkIndex(host.route, name) !== undefined) return exact;
  return links.find((link) => hasSameHardware(link, device));
}

/** Takes the device down and undoes what the container may have changed. Only taking it down must succeed. */
function resetSettings(socket: NetlinkSocket, link: Link, device: Device | undefined): void {
  setLink(socket, link, { up: false });
  if (device === undefined) return;
  const set = (change: LinkChange) => () => setLink(socket, link, change);
  if (link.mac !== device.mac) tryToReset(link, `MAC ${device.mac}`, set({ address: parseMac(device.mac) }));
  if (link.mtu !== device.mtu) tryToReset(link, `MTU ${device.mtu}`, set({ mtu: device.mtu }));
  if (device.altNames !== undefined) resetAltNames(socket, link, device.altNames);
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
  try {
    identify(`/sys/bus/${parent}`);
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether this is the machine's first namespace, to which the kernel returns physical devices. Only that one has the
 * sysctls of the whole machine.
 */
function isFirstNamespace(): boolean {
  return readSysctl("net/core/netdev_max_backlog") !== undefined;
}
