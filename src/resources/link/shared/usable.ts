/** Names, MAC addresses and MTUs that a link of ours can have: chosen, or refused before the link is made. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { parseMac } from "../../../net/mac.ts";
import type { Host } from "../../../contract/host.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { randomBytes } from "../../../ffi/random.ts";

/** The kernel refuses other MTUs when the link is made (linux/if_ether.h, ETH_MIN_MTU and ETH_MAX_MTU). */
const LEAST = 68, MOST = 65535;

/** For `judge`. */
export function requireUsableMtu(mtu: number | undefined): void {
  if (!mtu || mtu >= LEAST && mtu <= MOST) return;
  const why = mtu < LEAST ? `mtu less than device minimum` : "mtu greater than device maximum";
  throw new CniError(INTERNAL, `MTU ${mtu}: invalid argument (${why})`, `it must be between ${LEAST} and ${MOST}`);
}

/** "" for an address that a link can have. The kernel takes no group's address or none at all, and does not say so. */
function whyUnusableMac(mac: string | undefined): string {
  const bytes = mac === undefined ? undefined : parseMac(mac);
  if (bytes === undefined) return "";
  if ((bytes[0]! & 1) === 1) return `the MAC address ${mac} is a group's, and no link's`;
  return bytes.every((byte) => byte === 0) ? `the MAC address ${mac} is no address` : "";
}

/** For `judge`. */
export function requireUsableMac(mac: string | undefined): void {
  if (whyUnusableMac(mac) !== "") throw linkRefused("cannot assign requested address", mac);
}

/** The kernel's refusal of a link with this address, which may be the reason; `details` has another one. */
export function linkRefused(
  text: string,
  mac: string | undefined,
  { code = INTERNAL, details = "", cause }: { code?: number; details?: string; cause?: unknown } = {},
): CniError {
  const why = whyUnusableMac(mac), nextStep = why === "" ? undefined : USABLE_MACS;
  return new CniError(code, text, why || details, { cause, nextStep });
}

const USABLE_MACS = "a link's MAC address has an even first byte and is not all zeros, as in 02:00:00:00:00:09";

/** An unused name for a link of the host: `veth` and eight hexadecimal digits, as the reference plugins choose it. */
export function freshHostName(host: Host): string {
  for (;;) {
    const name = `veth${randomBytes(4).toHex()}`;
    if (linkIndex(host.route, name) === undefined) return name;
  }
}

/**
 * The index of a link that ADD makes in a container. The container can rename its link, and cannot give it another number
 * without moving it. The kernel counts from 1, so one of 15 million is free without asking, in every namespace that the link
 * may be moved to; and no other link has it by chance.
 */
export function freshIndex(): number {
  const [high, middle, low] = randomBytes(3) as unknown as [number, number, number];
  return FIRST_FRESH + ((high << 16 | middle << 8 | low) % (0x1000000 - FIRST_FRESH));
}

/** Above what the kernel reaches by counting, and below what programs have trouble with. */
const FIRST_FRESH = 0x100000;

/** ADD finds a link named CNI_IFNAME in the container. */
export function nameTakenError(text: string, cause?: unknown): CniError {
  const details =
    "the container has an interface of this name: DEL the attachment first, or choose another name (CNI_IFNAME, or --ifname of patchbay)";
  return new CniError(INTERNAL, text, details, { cause });
}
