/** Containers' addresses as sources of a zone of firewalld. An ingress policy is kept by iptables beside it. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { attemptAll } from "../../../contract/failures.ts";
import type { Host } from "../../../contract/host.ts";
import { whyNotRunning, withZone, type Zone } from "../../../interop/firewalld/client.ts";
import type { Backend } from "../shared/backend.ts";
import { claimedAddresses, type FirewallSpec, type MadeChains } from "./spec.ts";
import { isolation } from "./iptables.ts";

const UNREACHABLE = "firewalld cannot be reached: there is no D-Bus system bus";

function sourceOf(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}

/** Returns false where there is no bus. */
function forEachAddress(spec: FirewallSpec, work: (zone: Zone, address: string) => void): boolean {
  return withZone(spec.zone, (zone) => {
    for (const address of spec.addresses) work(zone, address);
  });
}

function add(spec: FirewallSpec, work: (zone: Zone, source: string) => void): void {
  const isReached = forEachAddress(spec, (zone, address) => {
    const source = sourceOf(address);
    try {
      work(zone, source);
    } catch (error) {
      const text = `failed to add the address ${source} to ${spec.zone} zone`;
      throw new CniError(INTERNAL, `${text}: ${(error as Error).message}`, "", { cause: error });
    }
  });
  if (!isReached) throw new CniError(INTERNAL, UNREACHABLE);
}

/** With another backend in the specification, one that does not run need not be waited for. */
function isAsked({ backend }: FirewallSpec): boolean {
  return backend === "firewalld" || whyNotRunning() === undefined;
}

function removeSources(spec: FirewallSpec, host: Host): void {
  if (!isAsked(spec)) return;
  const isClaimed = claimedAddresses(spec, host);
  forEachAddress(spec, (zone, address) => {
    if (!isClaimed(address)) zone.removeSource(sourceOf(address));
  });
}

export const backend: Backend<FirewallSpec, MadeChains> = {
  inSteps: true,
  judge: (spec) => add(spec, (zone, source) => zone.hasSource(source)),
  apply(spec, host, made) {
    add(spec, (zone, source) => zone.addSource(source));
    return spec.ingress === undefined || isolation.apply(spec, host, made);
  },
  verify(spec, host: Host) {
    if (!isAsked(spec)) return [UNREACHABLE];
    const differences: string[] = [];
    const reached = forEachAddress(spec, (zone, address) => {
      if (zone.hasSource(sourceOf(address))) return;
      differences.push(`failed to find the address ${sourceOf(address)} in ${spec.zone} zone`);
    });
    return [...reached ? differences : [UNREACHABLE], ...isolation.verify(spec, host)];
  },
  remove(spec, host, isRestated) {
    attemptAll([() => removeSources(spec, host), () => isolation.remove(spec, host, isRestated)]);
  },
  obstacle: (spec, host) => whyNotRunning() ?? isolation.obstacle(spec, host),
};
