/** The current addresses of links in the container. */
import { listAddresses } from "../../ffi/netlink/route/address.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { formatAddress } from "../../net/address.ts";
import type { Host } from "../../contract/host.ts";

/** Of one link, or of all without `ifName`. */
export function addressesOn({ container }: Host, ifName?: string): Set<string> {
  const texts = new Set<string>();
  if (container === undefined) return texts;
  const index = ifName === undefined ? 0 : linkIndex(container.route, ifName);
  if (index === undefined) return texts;
  for (const { bytes } of listAddresses(container.route, index)) texts.add(formatAddress(bytes));
  return texts;
}
