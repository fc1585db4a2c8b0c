/**
 * Where forwarding is allowed: in the tables of iptables, a zone of firewalld, or a table of our own. As the reference
 * plugin chooses: what is configured, else firewalld where it runs, else iptables.
 */
import { note } from "../../../contract/trace.ts";
import type { FirewallBackend } from "./spec.ts";

export function chooseFirewallBackend(configured: string) {
  const chosen = choose(configured);
  note("firewall backend", { ...chosen });
  return chosen;
}

/** A text that names no backend counts as nothing configured. */
function choose(configured: string): { backend: FirewallBackend; why: string } {
  if (configured === "iptables" || configured === "firewalld" || configured === "nftables") {
    return { backend: configured, why: `"backend": "${configured}" is configured` };
  }
  const { whyNotRunning } = require(
    "../../../interop/firewalld/client.ts",
  ) as typeof import("../../../interop/firewalld/client.ts");
  const why = whyNotRunning();
  return why === undefined ? { backend: "firewalld", why: "firewalld runs" } : { backend: "iptables", why };
}
