/** For `judge`: the kernel gives no link a group's address or none at all, and says so only when the link is made. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { parseMac } from "../../../net/mac.ts";

export function requireUsableMac(mac: string | undefined): void {
  const bytes = mac === undefined ? undefined : parseMac(mac);
  if (bytes === undefined) return;
  const isGroups = (bytes[0]! & 1) === 1, isNone = bytes.every((byte) => byte === 0);
  if (!isGroups && !isNone) return;
  const why = isGroups ? "it is the address of a group" : "it is no address";
  throw new CniError(INTERNAL, `MAC address ${mac}: cannot assign requested address`, why);
}
