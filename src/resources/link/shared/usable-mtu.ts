/** For `judge`: the kernel refuses other MTUs when the link is made (linux/if_ether.h, ETH_MIN_MTU and ETH_MAX_MTU). */
import { CniError, INTERNAL } from "../../../cni/error.ts";

const LEAST = 68, MOST = 65535;

export function requireUsableMtu(mtu: number | undefined): void {
  if (!mtu || mtu >= LEAST && mtu <= MOST) return;
  const why = mtu < LEAST ? `mtu less than device minimum` : "mtu greater than device maximum";
  throw new CniError(INTERNAL, `MTU ${mtu}: invalid argument (${why})`, `it must be between ${LEAST} and ${MOST}`);
}
