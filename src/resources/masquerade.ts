/**
 * Masquerading: what a container sends beyond its subnet leaves with the host's address (`ipMasq` of bridge and ptp).
 *
 * Written by one of two backends, see masquerade-backend.ts; the files in masquerade/ are what each of them writes.
 */
import { resource, type ResourceKind } from "../engine/resource.ts";
import type { Host } from "../engine/host.ts";
import { SyscallError } from "../ffi/errno.ts";
import type { MasqueradeBackend } from "./masquerade-backend.ts";
import { netfilterOf } from "./netfilter-socket.ts";

export interface MasqueradeSpec {
  backend: MasqueradeBackend;
  network: string;
  containerId: string;
  ifName: string;
  /** With prefix: `10.88.0.5/16`. */
  addresses: string[];
  /**
   * Told again from the configuration, not from what ADD wrote down: the backend may have been another one, or another
   * program's, and the addresses may be unknown.
   */
  restated?: boolean;
}

// Loaded when used: a process needs one of them, if any.
const nftables = (): typeof import("./masquerade/nftables.ts") => require("./masquerade/nftables.ts");
const iptablesNft = (): typeof import("./masquerade/iptables-nft.ts") => require("./masquerade/iptables-nft.ts");
const iptablesLegacy = (): typeof import("./masquerade/iptables-legacy.ts") =>
  require("./masquerade/iptables-legacy.ts");
const referenceNft = (): typeof import("./masquerade/reference-nft.ts") => require("./masquerade/reference-nft.ts");
const ownership = (): typeof import("./owner-comment.ts") => require("./owner-comment.ts");
const xtables = (): typeof import("../ffi/xtables.ts") => require("../ffi/xtables.ts");

function isLegacyHost(): boolean {
  const { findInPath, tablesForm } = xtables();
  return tablesForm(findInPath("iptables")) === "legacy";
}

/** Tables that iptables-legacy has used are there until the machine restarts, even empty ones. */
function hasLegacyRules(): boolean {
  return xtables().hasLegacyNat(4) || xtables().hasLegacyNat(6);
}

/** Tries every step, and throws what went wrong in any. */
function attemptAll(steps: (() => void)[]): void {
  const failures: Error[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      failures.push(error as Error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, failures.map(({ message }) => message).join("; "));
}

function verifyBackend(backend: MasqueradeBackend, spec: MasqueradeSpec, host: Host): string[] {
  if (backend === "nftables") return nftables().verify(host.netfilter, spec);
  return isLegacyHost() ? iptablesLegacy().verify(spec) : iptablesNft().verify(host.netfilter, spec);
}

export const masqueradeKind: ResourceKind<MasqueradeSpec> = {
  kind: "masquerade",
  unmade: undefined,
  apply(spec, host) {
    if (spec.backend === "iptables" && isLegacyHost()) return iptablesLegacy().apply(spec);
    const { apply } = spec.backend === "nftables" ? nftables() : iptablesNft();
    try {
      if (!apply(host.netfilter, spec)) throw new Error("ipMasq needs nf_tables, which this kernel does not have");
    } catch (error) {
      // Not the kernel's refusal: its answer was lost, and it may have done what it was asked.
      if (error instanceof SyscallError) masqueradeKind.remove(spec, host);
      throw error;
    }
  },
  verify(spec, host) {
    const differences = verifyBackend(spec.backend, spec, host);
    if (differences.length === 0 || !spec.restated) return differences;
    const other = spec.backend === "nftables" ? "iptables" : "nftables";
    const asReference = referenceNft().count(host.netfilter, spec) >= spec.addresses.length;
    return asReference || verifyBackend(other, spec, host).length === 0 ? [] : differences;
  },
  remove(spec, host) {
    const { backend, restated } = spec;
    const steps: (() => void)[] = [];
    const socket = netfilterOf(host);
    let found = false;
    if (socket !== undefined) {
      if (backend === "iptables" || restated) steps.push(() => found = iptablesNft().remove(socket, spec));
      if (backend === "nftables" && !restated) steps.push(() => nftables().remove(socket, spec));
    }
    if (socket !== undefined && restated) {
      const comment = ownership().ownerComment(spec);
      steps.push(() => nftables().removeWhere(socket, (owner) => owner === comment));
      steps.push(() => referenceNft().remove(socket, spec));
    }
    if (backend === "iptables" || restated) {
      steps.push(() => (restated || !found) && hasLegacyRules() && iptablesLegacy().remove(spec));
    }
    attemptAll(steps);
  },
  sweep(network, isValid, host) {
    const steps: (() => void)[] = [];
    const lost = (containerIds: string[]) =>
      containerIds.filter((containerId) => !isValid({ containerId }))
        .map((containerId) => ({ network, containerId, addresses: [] }));
    const socket = netfilterOf(host);
    if (socket !== undefined) {
      steps.push(() =>
        nftables().removeWhere(socket, (comment) => {
          const owner = ownership().ownerIn(comment, network);
          return owner !== undefined && !isValid(owner);
        })
      );
      steps.push(() => referenceNft().sweep(socket, network, isValid));
      steps.push(() => {
        const { owners, remove } = iptablesNft();
        for (const each of lost(owners(socket, network))) remove(socket, each);
      });
    }
    steps.push(() => {
      if (hasLegacyRules()) {
        for (const each of lost(iptablesLegacy().owners(network))) iptablesLegacy().remove(each);
      }
    });
    attemptAll(steps);
  },
  describe: ({ backend, addresses }) => `masquerade of ${addresses.join(" and ")} by ${backend}`,
};

export const masquerade = resource(masqueradeKind);
