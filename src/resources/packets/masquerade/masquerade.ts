/**
 * Masquerading: what a container sends beyond its subnet leaves with the host's address (`ipMasq` of bridge and ptp).
 *
 * Written by one of two backends, see nat-backend.ts; the files in masquerade/ are what each of them writes.
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import type { Host } from "../../../contract/host.ts";
import type { Prefix } from "../../../net/address.ts";
import { attemptAll } from "../../../contract/failures.ts";
import type { NatBackend } from "../nat-backend.ts";
import { netfilterOf } from "../netfilter-socket.ts";
import { undoUnlessRefused } from "../../../contract/undo-unless-refused.ts";

export interface MasqueradeSpec {
  backend: NatBackend;
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
const nftables = () => require("./nftables.ts") as typeof import("./nftables.ts");
const iptables = () => require("./iptables.ts") as typeof import("./iptables.ts");
const referenceNft = () => require("./reference-nft.ts") as typeof import("./reference-nft.ts");
const ownership = () => require("../owner-comment.ts") as typeof import("../owner-comment.ts");

function verifyBackend(backend: NatBackend, spec: MasqueradeSpec, host: Host): string[] {
  return backend === "nftables" ? nftables().verify(host.netfilter, spec) : iptables().verify(host, spec);
}

/** On any link of the container; undefined where it cannot be looked into. */
function addressesIn({ container }: Host): Prefix[] | undefined {
  if (container === undefined) return undefined;
  const { listAddresses } = require(
    "../../../ffi/netlink/route/address.ts",
  ) as typeof import("../../../ffi/netlink/route/address.ts");
  return listAddresses(container.route, 0);
}

export const masqueradeKind: ResourceKind<MasqueradeSpec> = {
  kind: "masquerade",
  unmade: undefined,
  apply(spec, host) {
    try {
      const done = spec.backend === "nftables"
        ? nftables().apply(host.netfilter, spec)
        : iptables().apply(host, spec);
      if (!done) throw new Error("ipMasq needs nf_tables, which this kernel does not have");
    } catch (error) {
      undoUnlessRefused(error, () => masqueradeKind.remove(spec, host));
      throw error;
    }
  },
  verify(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const differences = verifyBackend(spec.backend, spec, host);
    if (differences.length === 0 || !spec.restated) return differences;
    const other = spec.backend === "nftables" ? "iptables" : "nftables";
    const asReference = referenceNft().count(host.netfilter, spec) >= spec.addresses.length;
    return asReference || verifyBackend(other, spec, host).length === 0 ? [] : differences;
  },
  repair(spec, host) {
    if (spec.backend === "nftables") nftables().repair(host.netfilter, spec);
    else iptables().apply(host, spec);
  },
  remove(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const { backend, restated } = spec;
    const steps: (() => void)[] = [];
    const socket = netfilterOf(host);
    if (backend === "iptables" || restated) {
      steps.push(() => iptables().remove(socket, spec, () => addressesIn(host)));
    }
    if (socket !== undefined && backend === "nftables" && !restated) {
      steps.push(() => nftables().remove(socket, spec));
    }
    if (socket !== undefined && restated) {
      const comment = ownership().ownerComment(spec);
      steps.push(() => nftables().removeWhere(socket, (owner) => owner === comment));
      steps.push(() => referenceNft().remove(socket, spec));
    }
    attemptAll(steps);
  },
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    const steps = [() => iptables().sweep(socket, network, isValid)];
    if (socket !== undefined) {
      steps.push(() =>
        nftables().removeWhere(socket, (comment) => {
          const owner = ownership().ownerIn(comment, network);
          return owner !== undefined && !isValid(owner);
        })
      );
      steps.push(() => referenceNft().sweep(socket, network, isValid));
    }
    attemptAll(steps);
  },
  ownTable: ({ backend }) => backend === "nftables" ? "inet patchbay_masquerade" : undefined,
  describe: ({ backend, addresses }) => `masquerade of ${addresses.join(" and ")} by ${backend}`,
};

export const masquerade = resource(masqueradeKind);
