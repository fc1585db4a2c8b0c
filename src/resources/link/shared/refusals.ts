/**
 * What the host refuses on a link of ours, whatever the container behind it is capable of: to be told where its packets go.
 * Each is a sysctl that has to be 0. What keeps containers away from 127.0.0.1 is in packets/localhost-access.ts.
 */
import { errorText } from "../../../cni/error.ts";
import { EACCES, ENOENT, EPERM, EROFS, isErrno } from "../../../ffi/errno.ts";
import { mayWrite } from "../../../ffi/access.ts";
import { readSysctl, sysctlName, tryWriteSysctl, writeSysctl } from "../../../ffi/sysctl.ts";
import { warn } from "../../../process/warn.ts";

/** Router advertisements give the host addresses and a default route (CVE-2020-10749). */
export function advertisements(link: string): string[] {
  return [`net/ipv6/conf/${link}/accept_ra`];
}

/**
 * A redirect gives the host another router for a destination, on any link. Where a link forwards nothing, the kernel
 * accepts it if one of the two keys says so; so the other links go on as their own keys say. Redirects of IPv6 only change
 * routes over the link that they come by, on which a container can claim the router's address in any case.
 */
export function redirects(link: string): string[] {
  return [ownRedirects(link), OF_ALL_LINKS];
}

/** Suffices where the link forwards: there the kernel accepts a redirect only if both keys say so. */
export function ownRedirects(link: string): string {
  return `net/ipv4/conf/${link}/accept_redirects`;
}

/** Both, on a link that need not forward. `link` is its own name, no alternative one. */
export function refusals(link: string): string[] {
  return [...advertisements(link), ...redirects(link)];
}

/** As many of them as the link needs while the host forwards, or does not. */
export function redirectsNow(link: string): string[] {
  return readSysctl(`net/ipv4/conf/${link}/forwarding`) === "1" ? [ownRedirects(link)] : redirects(link);
}

const OF_ALL_LINKS = "net/ipv4/conf/all/accept_redirects";

/**
 * Returns a function that restores the host when ADD fails. It restores nothing where the host forwards by then, because
 * the kernel itself refuses them there.
 */
export function refuseRedirects(link: string): () => void {
  const before = readSysctl(OF_ALL_LINKS);
  refuse(redirects(link));
  return () => {
    if (before !== undefined && before !== "0" && readSysctl("net/ipv4/ip_forward") === "0") {
      tryWriteSysctl(OF_ALL_LINKS, before);
    }
  };
}

/**
 * `keys` have the link's own name, no alternative one. A link without the key accepts nothing: the kernel has no IPv6, or
 * the link's MTU is too small for it. Where /proc/sys is read-only, the operator has to know what stays open.
 */
export function refuse(keys: readonly string[]): void {
  for (const key of keys) {
    try {
      writeSysctl(key, "0");
    } catch (error) {
      if (!isErrno(error, ENOENT, EACCES, EPERM, EROFS)) throw error;
      const difference = isErrno(error, ENOENT) ? missing(key) : open(key);
      if (difference === undefined) continue;
      warn(`${difference}, so a container may change the routes of this host: ${errorText(error)}`);
    }
  }
}

/** One line for each that is not refused, and could be: ADD has warned of what it cannot set. */
export function accepted(keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const difference = open(key);
    return difference === undefined || !mayWrite(`/proc/sys/${key}`) ? [] : [difference];
  });
}

/**
 * A port of a switch that is not the kernel's bridge: the host is nobody there. It has no address of its own on the link, and
 * tells none of its others by ARP, also not for somebody else: medium_id is what proxy_arp goes by, and nothing else sets it.
 */
function portSysctls(link: string): [key: string, value: string][] {
  return [
    [`net/ipv4/conf/${link}/arp_ignore`, "8"],
    [`net/ipv4/conf/${link}/medium_id`, "-1"],
    [`net/ipv6/conf/${link}/disable_ipv6`, "1"],
  ];
}

export function setPortSysctls(link: string): void {
  for (const [key, value] of portSysctls(link)) tryWriteSysctl(key, value);
}

/** One line for each that has another value, and could be set. */
export function portSysctlDifferences(link: string): string[] {
  return portSysctls(link).flatMap(([key, value]) => {
    const current = readSysctl(key);
    if (current === undefined || current === value || !mayWrite(`/proc/sys/${key}`)) return [];
    return [`${sysctlName(key)} is ${current}, not ${value}`];
  });
}

function open(key: string): string | undefined {
  const value = readSysctl(key);
  if (value === undefined || value === "0" || (value === "1" && isRouter(key))) return undefined;
  return `${sysctlName(key)} is ${value}, not 0`;
}

/** Where a link forwards IPv6, the kernel only accepts advertisements if the key is 2. */
function isRouter(key: string): boolean {
  const link = key.slice(0, key.lastIndexOf("/"));
  return key.endsWith("/accept_ra") && readSysctl(`${link}/forwarding`) === "1";
}

/** Every link has the keys of IPv4. Without them it has another name. */
function missing(key: string): string | undefined {
  const [, , , link] = key.split("/");
  return readSysctl(ownRedirects(link!)) === undefined ? `${sysctlName(key)} is missing` : undefined;
}
