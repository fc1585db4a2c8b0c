/** The gateway's address on the bridge (or on its VLAN gateway link): shared by the network's containers. */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { addAddress, delAddress, listAddresses, overlap } from "../../ffi/netlink/route/address.ts";
import { getLink, linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { AF_INET, AF_INET6 } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { formatPrefix, parsePrefix } from "../../net/address.ts";
import { parseMac } from "../../net/mac.ts";

export interface BridgeGatewaySpec {
  ifName: string;
  /** In CIDR notation. */
  address: string;
  /** Replace an address that conflicts instead of failing. */
  force: boolean;
  /** What the link had before the container's port joined it: "" when it is not known, zero when it had no port. */
  mac: string;
}

/** Of a bridge whose last port has left, unless it was given another. The kernel accepts it from nobody. */
const NO_MAC = "00:00:00:00:00:00";

interface MadeGateway {
  added: boolean;
}

export const bridgeGatewayKind: ResourceKind<BridgeGatewaySpec, MadeGateway> = {
  kind: "bridge-gateway",
  unmade: { added: false },
  apply({ ifName, address, force, mac }, host) {
    const wanted = parsePrefix(address)!;
    const index = linkIndex(host.route, ifName);
    if (index === undefined) throw new CniError(INTERNAL, `failed to set bridge addr: link "${ifName}" not found`);
    const v4 = wanted.bytes.length === 4;
    const present = listAddresses(host.route, index, v4 ? AF_INET : AF_INET6);
    const text = formatPrefix(wanted);
    for (const other of present) if (formatPrefix(other) === text) return { added: false };
    const link = getLink(host.route, index)!;
    for (const other of present) {
      if (!v4 && !overlap(other, wanted)) continue;
      if (!force) {
        throw new CniError(
          INTERNAL,
          `failed to set bridge addr: "${ifName}" already has an IP address different from ${address}`,
          `it has ${formatPrefix(other)}; remove that address, or set "forceAddress": true, or use another bridge`,
        );
      }
      delAddress(host.route, link.index, other);
    }
    let added = true; // also when only the kernel's answer is lost
    try {
      added = addAddress(host.route, link.index, wanted, { skipDad: true }) === "added";
      // A bridge that others made takes the lowest MAC of its ports until it is given one: the one it had.
      setLink(host.route, link, { address: parseMac(mac === "" || mac === NO_MAC ? link.mac : mac) });
      return { added };
    } catch (error) {
      if (added) undoAfter(error, () => void delAddress(host.route, link.index, wanted));
      throw error;
    }
  },
  undo({ ifName, address }, { added }, host) {
    const index = added ? linkIndex(host.route, ifName) : undefined;
    if (index !== undefined) delAddress(host.route, index, parsePrefix(address)!);
  },
  repair: (spec, host) => void bridgeGatewayKind.apply(spec, host),
  remove: () => {},
  verify({ ifName, address }, host) {
    const index = linkIndex(host.route, ifName);
    if (index === undefined) return [`link ${ifName} is missing`];
    const wanted = formatPrefix(parsePrefix(address)!);
    const present = listAddresses(host.route, index).some((other) => formatPrefix(other) === wanted);
    return present ? [] : [`gateway address ${address} is missing on ${ifName}`];
  },
  describe: ({ ifName, address }) => `gateway address ${address} on ${ifName}`,
};

export const bridgeGateway = resource(bridgeGatewayKind);
