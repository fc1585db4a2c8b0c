/**
 * IP forwarding on the host, for one address family. A gateway needs it. DEL leaves it on, because other programs may need
 * it, too.
 */
import type { Host } from "../../contract/host.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { linkTo } from "../../ffi/netlink/route/route-lookup.ts";
import { readSysctl, sysctlName, writeSysctl } from "../../ffi/sysctl.ts";
import { MADE } from "../link/shared/host-link.ts";

interface ForwardingSpec {
  family: 4 | 6;
  /** The link of the host by which the container's packets come in. */
  ifName: string;
}

const keys = { 4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding" };

export const forwardingKind: ResourceKind<ForwardingSpec> = {
  kind: "forwarding",
  isSharedOnHost: true,
  apply({ family, ifName }, host) {
    if (readSysctl(keys[family]) !== "1") {
      writeSysctl(keys[family], "1");
      keepInternalBridgesOff(host);
    }
    // IPv6 asks that of all links alone.
    if (family === 4 && readSysctl(switchOf(ifName)) === "0" && isOurs(ifName, host)) {
      writeSysctl(switchOf(ifName), "1");
    }
  },
  repair: (spec, host) => forwardingKind.apply(spec, host),
  remove: () => {},
  verify: ({ family }) => readSysctl(keys[family]) === "1" ? [] : [`${sysctlName(keys[family])} is not 1`],
  inTheWay(spec, { route }) {
    if (spec.family === 6 || readSysctl(keys[spec.family]) !== "1") return [];
    const lines: string[] = [];
    for (const ifName of new Set([spec.ifName, linkTo(route, NOBODY)])) {
      if (ifName === undefined) continue;
      const key = switchOf(ifName), name = sysctlName(key);
      if (readSysctl(key) !== "0") continue;
      lines.push(`${name} is 0, so what comes in by ${ifName} is not forwarded: 'sysctl -w ${name}=1'`);
    }
    return lines;
  },
  stoppedByOthers: (spec, host, look) =>
    (require("../packets/shared/stopped-by-others.ts") as typeof import("../packets/shared/stopped-by-others.ts"))
      .sendersStopped(spec, host, look),
  describe: ({ family }) => `IPv${family} forwarding`,
};

/** What others made may be shut on purpose, as podman's internal bridges are. */
function isOurs(ifName: string, host: Host): boolean {
  const link = getLink(host.route, ifName);
  return link?.kind === "veth" || link?.alias?.startsWith(MADE) === true;
}

/** An address beyond every network of this host (RFC 5737): packets to it take the default route. */
const NOBODY = Uint8Array.of(192, 0, 2, 1);

/** For IPv4, each link has a switch of its own for what comes in by it. */
function switchOf(ifName: string): string {
  return `net/ipv4/conf/${ifName}/forwarding`;
}

/** The switch of the host sets every link's own. */
function keepInternalBridgesOff(host: Host): void {
  (require("../packets/shared/internal-bridges.ts") as typeof import("../packets/shared/internal-bridges.ts"))
    .keepForwardingOff(host);
}

export const forwarding = resource(forwardingKind);
