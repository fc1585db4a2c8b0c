/**
 * A device of the host, lent to a container: moved into its namespace, and back.
 *
 * It is never anywhere else: one request moves it, renames it and leaves its name on the host as its alias, which is
 * also where the reference plugin `host-device` looks for it. It is found again by that alias or by its index there,
 * and by the address it was made with, because the container may rename it and change all else.
 *
 * When the container's namespace ends first, the kernel gives a physical device back to the host under the name it had
 * in the container, or `dev<index>` when that is taken; what software made ends with the namespace.
 */
import { CniError, INTERNAL, TRY_AGAIN_LATER } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { closeFile, identify } from "../../ffi/files.ts";
import { getLink, type Link, type LinkChange, linkIndex, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { RTNLGRP_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../../ffi/netlink/socket.ts";
import { inNetns, isNetnsGone, netnsCookie, openNetns, openOwnNetns } from "../../ffi/netns.ts";
import { readSysctl } from "../../ffi/sysctl.ts";
import { warn } from "../../ffi/warn.ts";
import { parseMac } from "../../net/mac.ts";
import { nameTaken } from "./name-taken.ts";

/** As it is on the host. */
export type Device = Pick<
  Link,
  "name" | "index" | "kind" | "mac" | "permanentMac" | "mtu" | "alias" | "up" | "parent"
>;

export interface LentLinkSpec {
  /** CNI_IFNAME is its name in the container. */
  owner: Owner;
  netnsPath: string;
  /** Which namespace that was (Container.cookie): the path may lead to another one by now. */
  netns?: string;
  /** As ADD found it, and the index it gets in the container. Nothing when ADD was another program's. */
  device?: Device;
  index?: number;
  /** What is known instead: its name on the host from the configuration, its MAC from prevResult; or "". */
  known?: { name: string; mac: string };
}

/** What is taken away by the end of a namespace comes back in a moment, or not at all. */
const RETURN_WAIT_MS = 5000;

export const lentLinkKind: ResourceKind<LentLinkSpec> = {
  kind: "lent-link",
  isContainerLink: true,
  unmade: undefined,
  requireRoom({ owner: { ifName }, device }, host) {
    if (linkIndex(host.container!.route, ifName) === undefined) return;
    throw nameTaken(`failed to move link "${device!.name}": "${ifName}" already exists in the container`);
  },
  apply(spec, host) {
    const { route } = host.container!;
    try {
      lend(spec, spec.device!.index, host);
    } catch (error) {
      // It may be there, but under its old name: the kernel does what a request says one thing after the other.
      undoAfter(error, () => {
        const there = getLink(route, spec.index!);
        if (there !== undefined && isOurs(there, spec)) lentLinkKind.undo!(spec, undefined, host);
      });
      throw new CniError(INTERNAL, `failed to move link "${spec.device!.name}": ${(error as Error).message}`, "", {
        cause: error,
      });
    }
  },
  /** A failed ADD leaves the device as it was; after DEL it is down, as the reference plugin leaves it. */
  undo(spec, _made, host) {
    lentLinkKind.remove(spec, host);
    const link = spec.device!.up ? atHome(spec.device!, host) : undefined;
    if (link !== undefined) setLink(host.route, link, { up: true });
  },
  remove(spec, host) {
    if (host.container !== undefined && takeBack(spec, host.container.route, host)) return;
    // The runtime may not say where the namespace is, or name one that took its place.
    const reached = host.container?.netnsPath !== spec.netnsPath
      ? withSocketIn(spec, (route) => takeBack(spec, route, host))
      : false;
    if (reached === true || restore(spec, host)) return;
    const { device } = spec;
    if (host.container !== undefined || reached === false || device === undefined || atHome(device, host)) return;
    if (device.kind !== undefined) warn(`"${device.name}", a ${device.kind}, ended with the container's namespace`);
    else awaitReturn(spec, device, host);
  },
  verify(spec, host) {
    const { ifName } = spec.owner;
    const links = listLinks(host.container!.route);
    const link = links.find(({ name }) => name === ifName);
    if (link === undefined) {
      const ours = links.find((one) => isOurs(one, spec));
      return [`Cannot find container link ${ifName}${ours === undefined ? "" : `: it is called ${ours.name} now`}`];
    }
    if (spec.device === undefined) return [];
    const { name } = spec.device;
    if (!isOurs(link, spec)) return [`container interface ${ifName} is not the host's ${name}`];
    return link.alias === name ? [] : [`alias of ${ifName} is "${link.alias ?? ""}", not "${name}"`];
  },
  /** What is not there is not lent again: the namespace may be another container's by now. */
  repair(spec, host) {
    const { route } = host.container!;
    const { name } = spec.device!;
    const { ifName } = spec.owner;
    const inside = listLinks(route).find((one) => isOurs(one, spec));
    if (inside === undefined) throw new CniError(INTERNAL, `"${name}" is not in the container any more`);
    if (inside.name !== ifName) setLink(route, inside, { up: false });
    setLink(route, inside, { ifName, alias: name, up: inside.up || undefined });
  },
  describe: ({ owner: { ifName }, device, known }) =>
    `${device?.name || known?.name || "a device"} of the host, as ${ifName} in the container`,
};

export const lentLink = resource(lentLinkKind);

/** What of a link is needed to know it again, and to put it back as it was. */
export function asFound({ name, index, kind, mac, permanentMac, mtu, alias, up, parent }: Link): Device {
  return { name, index, kind, mac, permanentMac, mtu, alias, up, parent };
}

/** The index for a link that comes into a namespace: the one it has, or one above all others. */
export function freeIndex(socket: NetlinkSocket, index: number): number {
  if (getLink(socket, index) === undefined) return index;
  let highest = 0;
  for (const link of listLinks(socket)) highest = Math.max(highest, link.index);
  return highest + 1;
}

function lend({ owner: { ifName }, device, index }: LentLinkSpec, from: number, host: Host): void {
  const { name } = device!;
  const { netnsFd } = host.container!;
  setLink(host.route, { index: from, name }, { netnsFd, newIndex: index, ifName, alias: name });
}

function isSameMake(link: Link, { kind, permanentMac }: Pick<Device, "kind" | "permanentMac">): boolean {
  return link.kind === kind && link.permanentMac === permanentMac;
}

/** What was made without an address of its own has to have the one that ADD saw: there may be more of its kind. */
function isItself(link: Link, device: Device): boolean {
  return isSameMake(link, device) && (device.permanentMac !== undefined || link.mac === device.mac);
}

/** Whether a link of the container is the one that was lent. */
function isOurs(link: Link, { owner, netns, device, index, known }: LentLinkSpec): boolean {
  if (device !== undefined) {
    if (!isSameMake(link, device)) return false;
    // A namespace gives no index twice. Of one that is only called the same, that says little.
    const byIndex = link.index === index && (netns !== undefined || isItself(link, device));
    return byIndex || link.alias === device.name;
  }
  const { name, mac } = known!;
  if (!link.alias) return false;
  if (link.name === owner.ifName) return name === "" || link.alias === name || link.mac === mac;
  if (name === "") return mac !== "" && link.mac === mac;
  return link.alias === name && (mac === "" || link.mac === mac);
}

/** Answers whether the device was in the socket's namespace; it is on the host then. */
function takeBack(spec: LentLinkSpec, socket: NetlinkSocket, host: Host): boolean {
  const links = listLinks(socket);
  const ours = links.filter((link) => isOurs(link, spec));
  // Where several could be meant: names and aliases are the container's to give, indexes are not.
  const link = ours.find(({ index }) => index === spec.index) ??
    ours.find(({ name }) => name === spec.owner.ifName) ?? ours[0];
  if (link === undefined) return false;
  const name = spec.device?.name ?? link.alias!;
  const home = openOwnNetns();
  try {
    prepare(socket, link, spec.device);
    // Whoever watches the host's devices is to see it come under its own name.
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

/** Answers whether the device came back by itself; it has its name again then. */
function restore(spec: LentLinkSpec, host: Host): boolean {
  const link = strayOnHost(spec, host);
  if (link === undefined) return false;
  const { device } = spec, name = link.alias!;
  const isTaken = link.name !== name && linkIndex(host.route, name) !== undefined;
  if (isTaken) {
    warn(`"${name}" is another link's name by now: the device stays "${link.name}", with "${name}" as alias`);
  }
  if (!isTaken || device !== undefined) prepare(host.route, link, device);
  if (!isTaken) setLink(host.route, link, { ifName: name, alias: device?.alias ?? "" });
  return true;
}

/** The device on the host, as the kernel gave it back: its name here in its alias, and perhaps under another. */
function strayOnHost({ device, known }: LentLinkSpec, host: Host): Link | undefined {
  const name = device?.name ?? known!.name;
  // An alias that is not known to be a name may be anything that an operator wrote there.
  if (name === "") return undefined;
  const links = listLinks(host.route).filter(({ alias }) => alias === name);
  if (device === undefined) {
    const isLikely = ({ kind, mac }: Link) => kind === undefined || mac === known!.mac;
    return links.find((link) => link.name !== name && isLikely(link));
  }
  const itself = links.find((link) => isItself(link, device));
  if (itself !== undefined || linkIndex(host.route, name) !== undefined) return itself;
  return links.find((link) => isSameMake(link, device));
}

/** What the container may have changed, while nobody on the host can see it. The last step is the one that counts. */
function prepare(socket: NetlinkSocket, link: Link, device: Device | undefined): void {
  setLink(socket, link, { up: false });
  if (device === undefined) return;
  if (link.mac !== device.mac) tryToSet(socket, link, { address: parseMac(device.mac) }, `MAC ${device.mac}`);
  if (link.mtu !== device.mtu) tryToSet(socket, link, { mtu: device.mtu }, `MTU ${device.mtu}`);
}

/** A device that is back and a little different is better than one that is not. */
function tryToSet(socket: NetlinkSocket, link: Link, change: LinkChange, what: string): void {
  try {
    setLink(socket, link, change);
  } catch (error) {
    warn(`"${link.name}" does not get back its ${what}: ${(error as Error).message}`);
  }
}

/** Undefined when there is no such namespace any more. */
function withSocketIn<T>(spec: LentLinkSpec, work: (socket: NetlinkSocket) => T): T | undefined {
  let netns: number;
  try {
    netns = openNetns(spec.netnsPath);
  } catch (error) {
    if (isNetnsGone(error)) return undefined;
    throw error;
  }
  const home = openOwnNetns();
  let socket: NetlinkSocket | undefined;
  try {
    socket = inNetns(netns, home, () => openNetlink(NETLINK_ROUTE));
    if (spec.netns !== undefined && netnsCookie(socket.fd) !== spec.netns) return undefined;
    return work(socket);
  } finally {
    socket?.close();
    closeFile(home);
    closeFile(netns);
  }
}

function atHome(device: Device, host: Host): Link | undefined {
  const link = getLink(host.route, device.name);
  return link !== undefined && isItself(link, device) ? link : undefined;
}

/** The kernel takes namespaces apart behind everybody's back. */
function awaitReturn(spec: LentLinkSpec, device: Device, host: Host): void {
  const { name, parent } = device;
  const isLentAgain = () =>
    host.recordedByOthers(lentLinkKind.kind, spec.owner).some((other) => {
      const theirs = (other as LentLinkSpec).device;
      return theirs?.name === name && theirs.permanentMac === device.permanentMac;
    });
  if (parent === undefined || !isPlugged(parent) || isLentAgain()) return;
  if (!isFirstNamespace()) {
    warn(`"${name}" went back to the machine's first network namespace, which is not this one`);
    return;
  }
  if (awaitChange(RTNLGRP_LINK, RETURN_WAIT_MS, () => restore(spec, host) || atHome(device, host) !== undefined)) {
    return;
  }
  throw new CniError(
    TRY_AGAIN_LATER,
    `"${name}" is still in the container's network namespace`,
    `${spec.netnsPath} is gone, but something holds the namespace; the device comes back when it ends`,
  );
}

function isPlugged(parent: string): boolean {
  try {
    identify(`/sys/bus/${parent}`);
    return true;
  } catch {
    return false;
  }
}

/** Where the kernel puts physical devices whose namespace ends: the only one with settings of the whole machine. */
function isFirstNamespace(): boolean {
  return readSysctl("net/core/netdev_max_backlog") !== undefined;
}
