/**
 * Where forwarding is allowed: the tables of iptables, a zone of firewalld, or a table of our own. The reference
 * plugin's rule: what is configured, else firewalld where it runs, else iptables.
 */
import type { Host } from "../engine/host.ts";
import { note } from "../engine/trace.ts";
import { isLegacyHost } from "../ffi/iptables/table.ts";
import { hasNfTables } from "../ffi/netlink/nftables/batch.ts";
import { netfilterOf } from "./netfilter-socket.ts";

export type FirewallBackend = "iptables" | "firewalld" | "nftables";

export interface ChosenFirewall {
  backend: FirewallBackend;
  why: string;
}

const firewalld = (): typeof import("./firewall/firewalld.ts") => require("./firewall/firewalld.ts");

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

/** Why the backend cannot work on this host, or undefined. */
export function obstacleTo(backend: FirewallBackend, host: Host): string | undefined {
  if (backend === "firewalld") return firewalld().whyNotRunning();
  if (backend === "iptables" && isLegacyHost()) return undefined;
  const socket = netfilterOf(host);
  return socket !== undefined && hasNfTables(socket) ? undefined : "this kernel does not have nf_tables";
}
