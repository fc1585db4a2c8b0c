/**
 * Forwarding for a container's addresses: what it sends may leave, what answers it may come back, whatever becomes of
 * other forwarded packets; and which bridges may reach it (`ingressPolicy`).
 *
 * Written by one of three backends, see backend.ts.
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import type { Host } from "../../../contract/host.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";
import { attemptAll } from "../../../contract/failures.ts";
import type { FirewallBackend } from "./backend.ts";
import { netfilterOf } from "../netfilter-socket.ts";

export interface FirewallSpec {
  backend: FirewallBackend;
  network: string;
  containerId: string;
  ifName: string;
  /** Without prefix: `10.88.0.5`. */
  addresses: string[];
  /** Of iptables: rules in it come before those of the containers. */
  adminChain: string;
  /** Of firewalld. */
  zone: string;
  ingress?: Ingress;
  /** Told again from the configuration, not from what ADD wrote down: the backend may have been another one. */
  restated?: boolean;
}

export interface Ingress {
  /** Who may reach the containers of the bridge from another bridge that has a policy, or from this one: nobody else. */
  policy: "same-bridge" | "isolated";
  bridge: string;
}

/** The chains of iptables that this ADD made, for each family. */
export type MadeChains = Partial<Record<4 | 6, string[]>>;

// Loaded when used: a process needs one of them, or two.
const iptables = () => require("./iptables.ts") as typeof import("./iptables.ts");
const firewalld = () => require("./firewalld.ts") as typeof import("./firewalld.ts");
const nftables = () => require("./nftables.ts") as typeof import("./nftables.ts");

function applyBackend(spec: FirewallSpec, host: Host, made: MadeChains): void {
  if (spec.backend === "nftables") return nftables().apply(host.netfilter, spec);
  if (spec.backend === "firewalld") firewalld().apply(spec);
  if (spec.backend === "iptables" || spec.ingress !== undefined) iptables().apply(host, spec, made);
}

function verifyBackend(spec: FirewallSpec, host: Host): string[] {
  if (spec.backend === "nftables") return nftables().verify(host.netfilter, spec);
  return [
    ...spec.backend === "firewalld" ? firewalld().verify(spec) : [],
    ...iptables().verify(host, spec),
  ];
}

/** Addresses that another attachment's ledger holds: where a rule does not say whose it is, it is left to them. */
function claimedByOthers(spec: FirewallSpec, host: Host): () => ReadonlySet<string> {
  let claimed: Set<string> | undefined;
  return () => {
    if (claimed !== undefined) return claimed;
    claimed = new Set();
    for (const other of host.claimedByOthers(firewallKind.kind, spec) as FirewallSpec[]) {
      for (const address of other.addresses) claimed.add(address);
    }
    return claimed;
  };
}

export const firewallKind: ResourceKind<FirewallSpec, MadeChains> = {
  kind: "firewall",
  unmade: {},
  apply(spec, host) {
    const made: MadeChains = {};
    host.useShared();
    try {
      applyBackend(spec, host, made);
    } catch (error) {
      // The kernel's refusal is of the whole, where firewalld has no part in it. Else its answer may have been lost.
      if (!isNetlinkError(error) || spec.backend === "firewalld") {
        undoAfter(error, () => firewallKind.undo!(spec, made, host));
      }
      throw error;
    }
    return made;
  },
  verify(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const differences = verifyBackend(spec, host);
    if (differences.length === 0 || !spec.restated) return differences;
    const others = (["iptables", "nftables"] as const).filter((backend) => backend !== spec.backend);
    return others.some((backend) => verifyBackend({ ...spec, backend }, host).length === 0) ? [] : differences;
  },
  remove(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const { backend, restated } = spec, claimed = claimedByOthers(spec, host), socket = netfilterOf(host);
    const steps: (() => void)[] = [];
    if (backend === "iptables" || restated) steps.push(() => iptables().remove(socket, spec, claimed));
    if (backend === "firewalld" || (restated && firewalld().whyNotRunning() === undefined)) {
      steps.push(() => firewalld().remove(spec, claimed));
    }
    if (backend === "nftables" || restated) steps.push(() => socket && nftables().remove(socket, spec));
    attemptAll(steps);
  },
  undo(spec, made, host) {
    firewallKind.remove(spec, host);
    if (Object.keys(made).length === 0 || !host.isAloneWithShared()) return;
    // Containers of before the ledgers, or of firewalld, do not show in the chains.
    if (host.recordedByOthers(firewallKind.kind, spec).length === 0) iptables().removeChains(host, spec, made);
  },
  repair(spec, host) {
    applyBackend(spec, host, {});
  },
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    if (socket === undefined) return;
    attemptAll([
      () => iptables().sweep(socket, network, isValid),
      () => nftables().sweep(socket, network, isValid),
    ]);
  },
  ownTable: ({ backend }) => backend === "nftables" ? "inet patchbay_firewall" : undefined,
  describe({ backend, addresses, ingress }) {
    const reached = ingress === undefined ? "" : `, ${ingress.policy} on ${ingress.bridge}`;
    return `forwarding for ${addresses.join(" and ")} by ${backend}${reached}`;
  },
};

export const firewall = resource(firewallKind);
