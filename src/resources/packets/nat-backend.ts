/**
 * Where address translation (masquerading, port mappings) is written: nftables, or the tables of iptables. The reference
 * plugins' rule: what is configured, else iptables unless it cannot be used. They try it out by running it three times;
 * here it counts as usable when there is a program of that name in PATH (see
 * docs/quirks/masquerade.md, "ipmasq-backend-detection").
 */
import { note } from "../../contract/trace.ts";
import { findInPath } from "../../ffi/find-in-path.ts";

export type NatBackend = "nftables" | "iptables";

export interface ChosenBackend {
  backend: NatBackend;
  why: string;
}

/** `configured` has been validated; "" is the same as nothing. */
export function chooseNatBackend(configured?: NatBackend | "", what = "masquerade"): ChosenBackend {
  const chosen = choose(configured);
  note(`${what} backend`, { ...chosen });
  return chosen;
}

function choose(configured?: NatBackend | ""): ChosenBackend {
  if (configured) return { backend: configured, why: "configured" };
  const path = findInPath("iptables");
  if (path !== undefined) return { backend: "iptables", why: `found ${path}` };
  return { backend: "nftables", why: "no iptables in PATH" };
}
