/** A bridge's address that does not follow its ports. */
import { bridgeKind } from "../../../ffi/netlink/route/kinds/bridge.ts";
import type { Link, LinkChange } from "../../../ffi/netlink/route/link.ts";
import { parseMac } from "../../../net/mac.ts";

/** The kernel's default. */
const DEFAULT_PRIORITY = 0x8000;

/**
 * Sets the address, and the priority to its present value. Setting a priority makes the bridge look for a forwarding port
 * and drop its carrier until there is one. Otherwise its operational state would stay UNKNOWN.
 */
export function ownAddress({ mac }: Link): LinkChange {
  return { address: parseMac(mac), kind: bridgeKind({ priority: DEFAULT_PRIORITY }) };
}
