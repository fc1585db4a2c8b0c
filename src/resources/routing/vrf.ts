/**
 * A VRF of the container: a link whose members use a routing table of their own. Attachments of one container may share
 * it. DEL removes it when it has no members and a CNI plugin may have made it; an absent VRF counts as removed.
 *
 * We derive the VRF's MAC address, which appears on no wire, from its name. So the last DEL recognises a VRF of ours.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { addLink, getLink, listLinks, setLink } from "../../ffi/netlink/route/link.ts";
import { vrf as vrfLink } from "../../ffi/netlink/route/link-kinds.ts";
import { formatMac } from "../../net/mac.ts";
import { removeLink } from "../../ffi/netlink/route/remove-link.ts";
import { vrfTable } from "./shared/routing-tables.ts";
import type { Host } from "../../contract/host.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";

interface VrfSpec {
  name: string;
  table?: number;
}

export const vrfKind: ResourceKind<VrfSpec, { created: boolean }> = {
  kind: "vrf",
  unmade: { created: false },
  apply(spec, host) {
    const { route } = host.container!;
    if (getLink(route, spec.name) !== undefined) return { created: false };
    try {
      addLink(route, {
        ifName: spec.name,
        address: macOf(spec.name),
        kind: vrfLink.kind({ table: spec.table }),
        up: true,
      });
    } catch (error) {
      undoUnlessRefused(error, () => removeUnused(spec, host));
      const text = `cmdAdd failed: could not add VRF ${spec.name}: ${(error as Error).message}`;
      throw new CniError(INTERNAL, text, "", { cause: error });
    }
    return { created: true };
  },
  undo(spec, { created }, host) {
    if (created) removeUnused(spec, host);
  },
  remove(spec, host, isRestated) {
    if (host.container !== undefined) removeUnused(spec, host, isRestated);
  },
  verify({ name, table }, host) {
    const link = getLink(host.container!.route, name);
    if (link === undefined) return [`VRF ${name} is missing`];
    if (link.kind !== "vrf") return [`Netlink ${name} is not a VRF`];
    const differences: string[] = [];
    if (!link.up) differences.push(`VRF ${name} is down`);
    const current = vrfTable(link);
    if (table !== undefined && current !== table) {
      differences.push(`VRF ${name} has routing table ${current} instead of ${table}`);
    }
    return differences;
  },
  repair(spec, host) {
    const { route } = host.container!;
    vrfKind.apply(spec, host);
    const link = getLink(route, spec.name)!;
    if (!link.up) setLink(route, link, { up: true });
  },
  describe: ({ name, table }) => `VRF ${name}${table === undefined ? "" : ` with routing table ${table}`}`,
};

export const vrf = resource(vrfKind);

/** When restated, the reference plugin may have made it, and its VRFs look like any other. */
function removeUnused({ name }: VrfSpec, host: Host, isRestated = false): void {
  const { route, inside, alone } = host.container!;
  alone(() => {
    const link = getLink(route, name);
    if (link?.kind !== "vrf") return;
    if (listLinks(route, { master: link.index }).some(({ master }) => master === link.index)) return;
    if (!isRestated && link.mac !== formatMac(macOf(name))) return;
    removeLink(route, name, inside);
  });
}

/** A locally administered address. */
function macOf(name: string): Uint8Array {
  const digest = new Bun.CryptoHasher("sha256").update(`patchbay vrf ${name}`).digest();
  return new Uint8Array([0x02, ...digest.subarray(0, 5)]);
}
