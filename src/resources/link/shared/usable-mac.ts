/** The kernel gives no link a group's address or none at all, and does not say so. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { parseMac } from "../../../net/mac.ts";

/** "" for an address that a link can have. */
export function whyUnusableMac(mac: string | undefined): string {
  const bytes = mac === undefined ? undefined : parseMac(mac);
  if (bytes === undefined) return "";
  if ((bytes[0]! & 1) === 1) return `the MAC address ${mac} is a group's, and no link's`;
  return bytes.every((byte) => byte === 0) ? `the MAC address ${mac} is no address` : "";
}

/** For `judge`: before the link is made. */
export function requireUsableMac(mac: string | undefined): void {
  const why = whyUnusableMac(mac);
  if (why !== "") throw new CniError(INTERNAL, "cannot assign requested address", why);
}
