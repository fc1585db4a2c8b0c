/**
 * A persistent tap in the container: a link whose other end a program opens. DEL removes it by its index, which the
 * container cannot change, or, where that is not known, the link CNI_IFNAME if it is a tap. A tap that the container has
 * deleted, or a namespace that is gone, counts as removed.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import { getLink, type LinkChange, linkIndex, listLinks, setLink } from "../../../ffi/netlink/route/link.ts";
import { tunSettings } from "../../../ffi/netlink/route/link-kinds.ts";
import { addTap, type TapSettings } from "../../../ffi/tun.ts";
import { parseMac } from "../../../net/mac.ts";
import type { Host } from "../../../contract/host.ts";
import { removeLinkAt } from "../../../ffi/netlink/route/remove-link.ts";
import { removeHidden } from "../shared/hidden-link.ts";
import { linkRefused, nameTakenError, requireUsableMac, requireUsableMtu } from "../shared/usable.ts";
import { addTapWithContext } from "./selinux-tap.ts";

interface TapSpec extends TapSettings {
  ifName: string;
  /** "" when it is not known. */
  mac: string;
  mtu?: number;
  /** A bridge in the container. */
  bridge?: string;
  /** The SELinux context of the tap. */
  selinuxContext?: string;
}

const LINK_KIND = "tun";

export const tapKind: ResourceKind<TapSpec> = {
  kind: "tap",
  isContainerLink: true,
  opensLink: true,
  requireRoom(spec, host) {
    if (linkIndex(host.container!.route, spec.ifName) !== undefined) throw taken(spec);
  },
  judge(spec, host) {
    requiredMaster(spec, host);
    requireUsableMac(spec.mac);
    requireUsableMtu(spec.mtu);
  },
  apply(spec, host) {
    const { ifName, mac, mtu, selinuxContext } = spec;
    const { route, inside } = host.container!;
    const master = requiredMaster(spec, host);
    const add = selinuxContext === undefined ? addTap : addTapWithContext(selinuxContext);
    if (!inside(() => add(ifName, spec))) throw taken(spec);
    try {
      const change: LinkChange = { address: parseMac(mac), mtu, master };
      setLink(route, { index: spec.index ?? linkIndex(route, ifName)!, name: ifName }, change);
    } catch (error) {
      undoAfter(error, () => tapKind.remove(spec, host));
      const text = `failed to set up tap ${ifName}: ${(error as Error).message}`;
      throw linkRefused(text, mac, { cause: error });
    }
  },
  remove({ ifName, index, mac }, host) {
    if (host.container === undefined) return;
    const { route, inside } = host.container;
    const taps = listLinks(route).filter(({ kind }) => kind === LINK_KIND);
    const own = index === undefined
      // CNI_IFNAME belongs to this attachment, whoever made the link. A link of another kind is not this resource.
      ? taps.find(({ name }) => name === ifName) ?? taps.find((link) => mac !== "" && link.mac === mac)
      : taps.find((link) => link.index === index);
    if (own !== undefined) removeLinkAt(route, own, { inside });
    else if (index !== undefined) {
      removeHidden({ resource: "tap", ifName, kind: LINK_KIND, index, mac, master: undefined }, host);
    }
  },
  verify(spec, host) {
    const { ifName, mtu, bridge } = spec;
    const link = getLink(host.container!.route, ifName);
    if (link === undefined) return [`Cannot find container link ${ifName}`];
    if (link.kind !== LINK_KIND) {
      return [`container interface ${ifName} is a ${link.kind ?? "physical link"}, not a tap`];
    }
    const differences: string[] = [];
    const current: TapSettings = link.kindData === undefined ? spec : tunSettings(link.kindData);
    for (const key of ["multiQueue", "owner", "group"] as const) {
      if (current[key] === spec[key]) continue;
      differences.push(`tap ${ifName}: ${key} is ${current[key]} instead of ${spec[key]}`);
    }
    if (mtu !== undefined && link.mtu !== mtu) {
      differences.push(`tap ${ifName}: mtu is ${link.mtu} instead of ${mtu}`);
    }
    if (link.master !== masterOf(spec, host)) differences.push(`tap ${ifName} is not on ${bridge ?? "no bridge"}`);
    return differences;
  },
  repair(spec, host) {
    const link = getLink(host.container!.route, spec.ifName);
    if (link?.kind !== LINK_KIND) throw new Error(`there is no tap ${spec.ifName} any more`);
    setLink(host.container!.route, link, {
      address: parseMac(spec.mac),
      mtu: spec.mtu,
      master: masterOf(spec, host) ?? 0,
    });
  },
  describe: ({ ifName, bridge }) => `tap ${ifName} in the container${bridge === undefined ? "" : ` on ${bridge}`}`,
};

function requiredMaster(spec: TapSpec, host: Host): number | undefined {
  const master = masterOf(spec, host);
  if (spec.bridge === undefined || master !== undefined) return master;
  throw new CniError(INTERNAL, `failed to get bridge ${spec.bridge}: Link not found`, "it must be in the container");
}

export const tap = resource(tapKind);

function masterOf({ bridge }: TapSpec, host: Host): number | undefined {
  return bridge === undefined ? undefined : linkIndex(host.container!.route, bridge);
}

function taken({ ifName }: TapSpec): CniError {
  return nameTakenError(`failed to create tap: "${ifName}" already exists in the container`);
}
