/**
 * The loopback link of the container, up. Owns only that state: the link itself comes and goes with the namespace. DEL
 * takes it down, and does nothing when the namespace is gone.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { listAddresses } from "../../ffi/netlink/route/address.ts";
import { getLink, setLink } from "../../ffi/netlink/route/link.ts";
import { loopback } from "../../ffi/netlink/route/loopback.ts";
import { formatAddress, formatPrefix } from "../../net/address.ts";

interface MadeLoopback {
  /** In CIDR notation. The kernel assigns them when the link comes up. */
  addresses: string[];
}

export const loopbackUpKind: ResourceKind<Record<string, never>, MadeLoopback> = {
  kind: "loopback-up",
  unmade: { addresses: [] },
  apply(_spec, host) {
    const { route } = host.container!;
    const wasUp = getLink(route, loopback.index)?.up;
    setLink(route, loopback, { up: true });
    const addresses = listAddresses(route, loopback.index);
    const foreign = addresses.find(({ bytes }) =>
      bytes.length === 4 ? bytes[0] !== 127 : formatAddress(bytes) !== "::1"
    );
    if (foreign === undefined) return { addresses: addresses.map(formatPrefix) };
    if (!wasUp) setLink(route, loopback, { up: false });
    throw new CniError(INTERNAL, `loopback interface found with non-loopback address "${formatPrefix(foreign)}"`);
  },
  repair: (spec, host) => void loopbackUpKind.apply(spec, host),
  remove(_spec, host) {
    if (host.container !== undefined) setLink(host.container.route, loopback, { up: false });
  },
  verify: (_spec, host) => getLink(host.container!.route, loopback.index)?.up ? [] : ["loopback interface is down"],
  describe: () => "loopback link up",
};

export const loopbackUp = resource(loopbackUpKind);
