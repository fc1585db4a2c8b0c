/**
 * What the host refuses on a link of ours, whatever the container behind it is capable of: to be told where its packets go.
 * Each is a sysctl that has to be 0. What keeps containers away from 127.0.0.1 is in packets/localhost-access.ts.
 */
import { errorText } from "../../../cni/error.ts";
import { EACCES, ENOENT, EPERM, EROFS, isErrno } from "../../../ffi/errno.ts";
import { readSysctl, tryWriteSysctl, writeSysctl } from "../../../ffi/sysctl.ts";
import { warn } from "../../../ffi/warn.ts";

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
  return [`net/ipv4/conf/${link}/accept_redirects`, OF_ALL_LINKS];
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

/** A kernel without the key accepts nothing. Where /proc/sys is read-only, the operator has to know what stays open. */
export function refuse(keys: readonly string[]): void {
  for (const key of keys) {
    try {
      writeSysctl(key, "0");
    } catch (error) {
      if (isErrno(error, ENOENT)) continue;
      if (!isErrno(error, EACCES, EPERM, EROFS)) throw error;
      for (const difference of accepted([key])) {
        warn(`${difference}, so a container may change the routes of this host: ${errorText(error)}`);
      }
    }
  }
}

/** One line for each that is not refused. */
export function accepted(keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const value = readSysctl(key);
    return value === undefined || value === "0" ? [] : [`${key.replaceAll("/", ".")} is ${value}, not 0`];
  });
}
