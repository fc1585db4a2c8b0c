/**
 * Settings of a link that another plugin made: MAC, MTU, queue length, promiscuous and all-multicast mode. Owns a backup
 * file with the earlier values. DEL restores those values and removes the file; if the link is gone, or another link has
 * its name, DEL only removes the file.
 *
 * The file has the format and the path of the reference plugin `tuning`, so its DEL can undo our ADD, and our DEL its ADD.
 * The first ADD writes the values, and a repeated ADD keeps them. DEL takes values that the file lacks from the ledger.
 */
import { INTERNAL, INVALID_CONFIG, undefinedOnError } from "../../cni/error.ts";
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
  removeFile,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { overwriteStateFile, readStateFile, unlessUntrusted } from "../../process/state-file.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { getLink, type Link, type LinkChange, setLink } from "../../ffi/netlink/route/link.ts";
import { IFF_ALLMULTI, IFF_PROMISC } from "../../ffi/netlink/uapi/if-link.ts";
import { warn } from "../../process/warn.ts";
import { canonicalMac, parseMac } from "../../net/mac.ts";
import { linkRefused, requireUsableMac } from "./shared/usable.ts";

/** Keys and their order are those of the reference plugin's file. */
export interface LinkSettings {
  mac?: string;
  promisc?: boolean;
  mtu?: number;
  allmulti?: boolean;
  txQLen?: number;
}

interface LinkSettingsSpec {
  ifName: string;
  wanted: LinkSettings;
  backupFile: string;
  /** The link's index. This and `before` are undefined when another program did ADD. */
  index?: number;
  before?: LinkSettings;
}

export const linkSettingsKind: ResourceKind<LinkSettingsSpec, Backup> = {
  kind: "link-settings",
  isOfInterface: true,
  unmade: {},
  judge: ({ wanted }) => requireUsableMac(wanted.mac),
  apply(spec, host) {
    const { ifName, wanted } = spec;
    const backup = writeBackup(spec);
    try {
      setLink(host.container!.route, { index: spec.index!, name: ifName }, changeTo(wanted));
    } catch (error) {
      undoAfter(error, () => linkSettingsKind.undo!(spec, backup, host));
      if (!isNetlinkError(error)) throw error;
      const code = isNetlinkError(error, EINVAL, ERANGE, EADDRNOTAVAIL) ? INVALID_CONFIG : INTERNAL;
      const text = `failed to set ${describeSettings(wanted)} of "${ifName}": ${error.message}`;
      throw linkRefused(text, wanted.mac, { code, cause: error });
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
    const current = settingsOf(link, wanted);
    const differences: string[] = [];
    const differ = (what: string, configured: unknown, value: unknown) =>
      differences.push(`Error: Tuning ${what} is ${configured}, current value is ${value}`);
    if (wanted.mac !== undefined && canonicalMac(wanted.mac) !== link.mac) {
      differ(`configured Ethernet of ${ifName}`, wanted.mac, link.mac);
    }
    if (wanted.promisc !== current.promisc) {
      differ(`link ${ifName} configured promisc`, wanted.promisc, current.promisc);
    }
    if (wanted.mtu !== current.mtu) differ(`configured MTU of ${ifName}`, wanted.mtu, current.mtu);
    if (wanted.allmulti !== current.allmulti) {
      differ(`configured all-multicast mode of ${ifName}`, wanted.allmulti, current.allmulti);
    }
    if (wanted.txQLen !== current.txQLen) differ(`configured txQLen of ${ifName}`, wanted.txQLen, current.txQLen);
    return differences;
  },
  remove(spec, host) {
    const backup = unlessUntrusted(() => ({ text: readStateFile(spec.backupFile) }));
    putBack(spec, { ...spec.before, ...parseBackup(backup?.text) }, host);
    // What is not trusted may be anybody's.
    if (backup !== undefined) removeFile(spec.backupFile);
  },
  repair({ ifName, wanted }, host) {
    const link = getLink(host.container!.route, ifName);
    if (link !== undefined) setLink(host.container!.route, link, changeTo(wanted));
  },
  describe: ({ ifName, wanted }) => `${describeSettings(wanted) || "settings"} of ${ifName}`,
};

export const linkSettings = resource(linkSettingsKind);

/** The link's current value of each setting in `wanted`. */
export function settingsOf(link: Link, wanted: LinkSettings): LinkSettings {
  const current: LinkSettings = {};
  if (wanted.mac !== undefined) current.mac = link.mac;
  if (wanted.promisc !== undefined) current.promisc = (link.flags & IFF_PROMISC) !== 0;
  if (wanted.mtu !== undefined) current.mtu = link.mtu;
  if (wanted.allmulti !== undefined) current.allmulti = (link.flags & IFF_ALLMULTI) !== 0;
  if (wanted.txQLen !== undefined) current.txQLen = link.txQueueLength;
  return current;
}

function changeTo({ mac, promisc, mtu, allmulti, txQLen }: LinkSettings): LinkChange {
  const address = mac === undefined ? undefined : parseMac(mac);
  return { address, promiscuous: promisc, mtu, allMulticast: allmulti, txQueueLength: txQLen };
}

/** Skips another link that has the name by now. Only warns about what the kernel refuses, so that DEL can finish. */
function putBack({ ifName, index }: LinkSettingsSpec, before: LinkSettings, host: Host): void {
  if (host.container === undefined || Object.keys(before).length === 0) return;
  const { route } = host.container;
  const link = getLink(route, ifName);
  if (link === undefined || (index !== undefined && index !== link.index)) return;
  try {
    setLink(route, link, changeTo(before));
  } catch (error) {
    if (!isNetlinkError(error)) throw error;
    // One refused setting stops the others, so set each by itself.
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

/** The text of the backup file before this ADD, if there was one. */
interface Backup {
  earlier?: string;
}

/** Keeps the values of an earlier ADD and adds those it lacks. Replaces a file that a crash cut off. */
function writeBackup({ backupFile, before }: LinkSettingsSpec): Backup {
  const earlier = readStateFile(backupFile);
  const earlierValues = parseBackup(earlier);
  if (earlierValues !== undefined) {
    replaceText(backupFile, textOf({ ...before, ...earlierValues }));
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

/** The reference plugin's format. */
function textOf({ mac, promisc, mtu, allmulti, txQLen }: LinkSettings): string {
  return JSON.stringify({ mac, promisc, mtu, allmulti, txQLen }, null, 1);
}

function replaceText(file: string, text: string): void {
  if (readStateFile(file) !== text) overwriteStateFile(file, text);
}

function parseBackup(text: string | undefined): LinkSettings | undefined {
  if (text === undefined) return undefined;
  const document: Record<string, unknown> | null | undefined = undefinedOnError(() => JSON.parse(text));
  if (document === undefined) return undefined;
  const { mac, promisc, mtu, allmulti, txQLen } = document ?? {};
  const settings: LinkSettings = {};
  if (typeof mac === "string" && parseMac(mac) !== undefined) settings.mac = mac;
  if (typeof promisc === "boolean") settings.promisc = promisc;
  if (Number.isSafeInteger(mtu) && mtu as number > 0) settings.mtu = mtu as number;
  if (typeof allmulti === "boolean") settings.allmulti = allmulti;
  if (Number.isSafeInteger(txQLen) && txQLen as number >= 0) settings.txQLen = txQLen as number;
  return settings;
}

function describeSettings(settings: LinkSettings): string {
  return Object.entries(settings).map(([key, value]) => `${key} ${value}`).join(", ");
}
