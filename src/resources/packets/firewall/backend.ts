/**
 * Where forwarding is allowed: the tables of iptables, a zone of firewalld, or a table of our own. The reference
 * plugin's rule: what is configured, else firewalld where it runs, else iptables.
 */
import { note } from "../../../contract/trace.ts";

export type FirewallBackend = "iptables" | "firewalld" | "nftables";

export interface ChosenFirewall {
  backend: FirewallBackend;
  why: string;
}

const firewalld = () => require("./firewalld.ts") as typeof import("./firewalld.ts");

export function chooseFirewallBackend(configured: string): ChosenFirewall {
  const chosen = choose(configured);
  note("firewall backend", { ...chosen });
  return chosen;
}

/** Anything else than the name of a backend is as good as none. */
function choose(configured: string): ChosenFirewall {
  if (configured === "iptables" || configured === "firewalld" || configured === "nftables") {
    return { backend: configured, why: "configured" };
  }
  const why = firewalld().whyNotRunning();
  return why === undefined ? { backend: "firewalld", why: "firewalld runs" } : { backend: "iptables", why };
}
