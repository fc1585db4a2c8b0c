/**
 * The addresses that an IPAM plugin leases to the attachment. Each operation is a verb of that plugin, with the network's
 * configuration; the plugin keeps the record.
 */
import { CniError, failureLines, INTERNAL } from "../../cni/error.ts";
import type { Result } from "../../cni/result.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";

interface LeaseSpec {
  /** The IPAM plugin's name. */
  type: string;
  /** Whether it may lease no address, and only give routes. */
  mayBeEmpty?: boolean;
}

export const leaseKind: ResourceKind<LeaseSpec, Result> = {
  kind: "ipam",
  isDelegated: true,
  isLease: true,
  unmade: { cniVersion: "" },
  apply({ type, mayBeEmpty }, host) {
    const result = host.delegate(type, "ADD")!;
    if (result.ips?.length || mayBeEmpty) return result;
    const error = new CniError(INTERNAL, "IPAM plugin returned missing IP config");
    undoAfter(error, () => host.delegate(type, "DEL"));
    throw error;
  },
  verify: ({ type }, host) => failureLines(() => host.delegate(type, "CHECK")),
  remove: ({ type }, host) => void host.delegate(type, "DEL"),
  describe: ({ type }) => `addresses leased by ${type}`,
};

export const lease = resource(leaseKind);
