/**
 * Where address translation (masquerading, port mappings) is written: in nftables, or in the tables of iptables. As the
 * reference plugins choose: what is configured, else iptables unless it cannot be used. They find out by running it three
 * times; here it can be used when PATH has a program of that name (docs/quirks/masquerade.md,
 * "ipmasq-backend-detection").
 */
import { note } from "../../../contract/trace.ts";
import { hostIptables } from "../../../interop/iptables/which-iptables.ts";

export type NatBackend = "nftables" | "iptables";

/** `configured` is valid; "" counts as nothing configured. */
export function chooseNatBackend(configured?: NatBackend | "", what = "masquerade") {
  const chosen = choose(configured);
  note(`${what} backend`, { ...chosen });
  return chosen;
}

function choose(configured: NatBackend | "" | undefined): { backend: NatBackend; why: string } {
  if (configured) return { backend: configured, why: "configured" };
  const path = hostIptables();
  if (path !== undefined) return { backend: "iptables", why: `found ${path}` };
  return { backend: "nftables", why: "no iptables in PATH" };
}
