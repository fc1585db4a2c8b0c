/**
 * Settings of the container's link that others made: its MAC, MTU, queue length and modes. What they were is kept in a
 * file in the form and the place of the reference plugin `tuning`, so that its DEL can put back what our ADD changed,
 * and ours what its ADD did.
 *
 * The file is as old as the first ADD: what it says stays when ADD is repeated, and is what DEL goes by. The ledger
 * serves for what it does not say.
 */
import { CniError, INTERNAL, INVALID_CONFIG } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EADDRNOTAVAIL, EINVAL, ERANGE } from "../../ffi/errno.ts";
import {
  closeFile,
  makeDirectories,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_WRONLY,
  openFile,
  overwriteFile,
  readTextFile,
  removeFile,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { getLink, type Link, type LinkChange, setLink } from "../../ffi/netlink/route/link.ts";
import { IFF_ALLMULTI, IFF_PROMISC } from "../../ffi/netlink/uapi/if-link.ts";
import { warn } from "../../ffi/warn.ts";
import { parseMac } from "../../net/mac.ts";

/** The keys are those of the reference plugin's file; the order, too. */
export interface LinkSettings {
  mac?: string;
  promisc?: boolean;
  mtu?: number;
  allmulti?: boolean;
  txQLen?: number;
}

export interface LinkSettingsSpec {
  ifName: string;
  wanted: LinkSettings;
  backupFile: string;
  /** Of the link ADD found. Nothing of the two when ADD was another program's. */
  index?: number;
  before?: LinkSettings;
}

export const linkSettingsKind: ResourceKind<LinkSettingsSpec, Backup> = {
  kind: "link-settings",
  isOfInterface: true,
  unmade: {},
  apply(spec, host) {
    const { ifName, wanted } = spec;
    const backup = keepBackup(spec);
    try {
      setLink(host.container!.route, { index: spec.index!, name: ifName }, changeTo(wanted));
    } catch (error) {
      undoAfter(error, () => linkSettingsKind.undo!(spec, backup, host));
      if (!isNetlinkError(error)) throw error;
      const code = isNetlinkError(error, EINVAL, ERANGE, EADDRNOTAVAIL) ? INVALID_CONFIG : INTERNAL;
      throw new CniError(code, `failed to set ${words(wanted)} of "${ifName}": ${error.message}`, "", {
        cause: error,
      });
    }
    return backup;
  },
  undo(spec, { earlier }, host) {
    putBack(spec, spec.before!, host);
    if (earlier === undefined) removeFile(spec.backupFile);
    else replaceText(spec.backupFile, earlier);
  },
  verify({ ifName, wanted }, host) {
    const link = getLink(host.container!.route, ifName);
    if (link === undefined) return [`Cannot find container link ${ifName}`];
    const is = settingsOf(link, wanted);
    const differences: string[] = [];
    const differ = (what: string, configured: unknown, current: unknown) =>
      differences.push(`Error: Tuning ${what} is ${configured}, current value is ${current}`);
    if (wanted.mac !== undefined && !isSameMac(wanted.mac, link.mac)) {
      differ(`configured Ethernet of ${ifName}`, wanted.mac, link.mac);
    }
    if (wanted.promisc !== is.promisc) differ(`link ${ifName} configured promisc`, wanted.promisc, is.promisc);
    if (wanted.mtu !== is.mtu) differ(`configured MTU of ${ifName}`, wanted.mtu, is.mtu);
    if (wanted.allmulti !== is.allmulti) {
      differ(`configured all-multicast mode of ${ifName}`, wanted.allmulti, is.allmulti);
    }
    if (wanted.txQLen !== is.txQLen) differ(`configured txQLen of ${ifName}`, wanted.txQLen, is.txQLen);
    return differences;
  },
  remove(spec, host) {
    putBack(spec, { ...spec.before, ...parseBackup(readTextFile(spec.backupFile)) }, host);
    removeFile(spec.backupFile);
  },
  repair({ ifName, wanted }, host) {
    const link = getLink(host.container!.route, ifName);
    if (link !== undefined) setLink(host.container!.route, link, changeTo(wanted));
  },
  describe: ({ ifName, wanted }) => `${words(wanted) || "settings"} of ${ifName}`,
};

export const linkSettings = resource(linkSettingsKind);

/** What the link has in place of each of the wanted settings. */
export function settingsOf(link: Link, wanted: LinkSettings): LinkSettings {
  const is: LinkSettings = {};
  if (wanted.mac !== undefined) is.mac = link.mac;
  if (wanted.promisc !== undefined) is.promisc = (link.flags & IFF_PROMISC) !== 0;
  if (wanted.mtu !== undefined) is.mtu = link.mtu;
  if (wanted.allmulti !== undefined) is.allmulti = (link.flags & IFF_ALLMULTI) !== 0;
  if (wanted.txQLen !== undefined) is.txQLen = link.txQueueLength;
  return is;
}

function changeTo({ mac, promisc, mtu, allmulti, txQLen }: LinkSettings): LinkChange {
  const address = mac === undefined ? undefined : parseMac(mac);
  return { address, promiscuous: promisc, mtu, allMulticast: allmulti, txQueueLength: txQLen };
}

/** The name alone may be another link's by now. What the kernel refuses is told and left: DEL must come to an end. */
function putBack({ ifName, index }: LinkSettingsSpec, before: LinkSettings, host: Host): void {
  if (host.container === undefined || Object.keys(before).length === 0) return;
  const { route } = host.container;
  const link = getLink(route, ifName);
  if (link === undefined || (index !== undefined && index !== link.index)) return;
  try {
    setLink(route, link, changeTo(before));
  } catch (error) {
    if (!isNetlinkError(error)) throw error;
    // One of them stops the others, so each by itself.
    for (const [key, value] of Object.entries(before)) {
      try {
        setLink(route, link, changeTo({ [key]: value }));
      } catch (refusal) {
        if (!isNetlinkError(refusal)) throw refusal;
        warn(`${key} of ${ifName} cannot be put back to ${value}: ${refusal.message}`);
      }
    }
  }
}

/** What stood in the file before this ADD wrote it, if it was there. */
interface Backup {
  earlier?: string;
}

/** An earlier ADD's stays, and gets what that one did not change. One that a crash cut off counts as none. */
function keepBackup({ backupFile, before }: LinkSettingsSpec): Backup {
  const earlier = readTextFile(backupFile);
  const kept = parseBackup(earlier);
  if (kept !== undefined) {
    replaceText(backupFile, textOf({ ...before, ...kept }));
    return { earlier };
  }
  if (earlier !== undefined) removeFile(backupFile);
  makeDirectories(backupFile.slice(0, backupFile.lastIndexOf("/")), 0o700);
  const fd = openFile(backupFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  try {
    writeAll(fd, utf8(textOf(before!)), backupFile);
  } catch (error) {
    undoAfter(error, () => removeFile(backupFile));
    throw error;
  } finally {
    closeFile(fd);
  }
  return {};
}

/** As the reference plugin formats it. */
function textOf({ mac, promisc, mtu, allmulti, txQLen }: LinkSettings): string {
  return JSON.stringify({ mac, promisc, mtu, allmulti, txQLen }, null, 1);
}

function replaceText(file: string, text: string): void {
  const present = readTextFile(file) ?? "";
  if (present !== text) overwriteFile(file, text, utf8(present).length);
}

function parseBackup(text: string | undefined): LinkSettings | undefined {
  if (text === undefined) return undefined;
  let document: Record<string, unknown> | null;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { mac, promisc, mtu, allmulti, txQLen } = document ?? {};
  const settings: LinkSettings = {};
  if (typeof mac === "string" && parseMac(mac) !== undefined) settings.mac = mac;
  if (typeof promisc === "boolean") settings.promisc = promisc;
  if (Number.isSafeInteger(mtu) && mtu as number > 0) settings.mtu = mtu as number;
  if (typeof allmulti === "boolean") settings.allmulti = allmulti;
  if (Number.isSafeInteger(txQLen) && txQLen as number >= 0) settings.txQLen = txQLen as number;
  return settings;
}

function isSameMac(one: string, other: string): boolean {
  return parseMac(one)?.toHex() === parseMac(other)?.toHex();
}

function words(settings: LinkSettings): string {
  return Object.entries(settings).map(([key, value]) => `${key} ${value}`).join(", ");
}
