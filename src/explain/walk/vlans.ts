/** A bridge that filters VLANs: which frames without a tag a port takes in, and which leave by it so. */
import { vlan as vlanFormat } from "../../ffi/netlink/route/link-kinds.ts";
import type { VlanRange } from "../../ffi/netlink/route/bridge.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { shell } from "../../process/shell-word.ts";
import { linkAt, type NetnsFacts } from "../facts.ts";
import { repairOf } from "../remedy.ts";
import { type Move, type Remedy, stopped, type Traveller } from "./traveller.ts";

/** Which VLAN, and whose port it should be in; undefined where that is not known. */
interface Wanted {
  vlan?: number;
  whose?: NetnsFacts;
}

/** A port, or the bridge itself, takes frames without a tag into its PVID's VLAN. */
export function pvidOf({ netns }: Traveller, port: Link): number | undefined {
  return netns.vlansOf(port).find(({ pvid }) => pvid)?.first;
}

/** Behind which port the bridge has seen the MAC address, in a VLAN where it filters them. */
export function portWithMac({ netns }: Traveller, bridge: Link, mac: string, vlan?: number): Link | undefined {
  return linkAt(netns, netns.portBehind(bridge, mac, bridge.vlanFiltering ? vlan : undefined) ?? -1);
}

/** Undefined when it takes frames without a tag. */
export function withoutVlan(traveller: Traveller, port: Link, bridge: Link, wanted: Wanted): Move[] | undefined {
  if (!bridge.vlanFiltering || pvidOf(traveller, port) !== undefined) return undefined;
  const text = `${port.name} has no VLAN for frames without a tag, and ${bridge.name} filters VLANs`;
  return stopped(traveller, { code: "vlan-mismatch", what: port.name, text, mend: mended(port, bridge, wanted) });
}

/** Where a frame leaves a bridge; `takesTags`: somebody may be there who takes frames with a tag. */
export interface FrameOut extends Wanted {
  port: Link;
  bridge: Link;
  takesTags?: true;
}

function membership({ netns }: Traveller, { port, vlan }: FrameOut): VlanRange | undefined {
  return netns.vlansOf(port).find(({ first }) => first === vlan);
}

/** The tag with which the frame leaves there; undefined when it leaves without. */
export function tagAt(traveller: Traveller, out: FrameOut): number | undefined {
  const own = out.bridge.vlanFiltering ? membership(traveller, out) : undefined;
  return own === undefined || own.untagged ? undefined : out.vlan;
}

/** Undefined when a frame of the VLAN leaves there, and who is behind takes it. */
export function outsideVlan(traveller: Traveller, out: FrameOut): Move[] | undefined {
  const { port, bridge, vlan, whose, takesTags } = out;
  if (!bridge.vlanFiltering) return undefined;
  const own = membership(traveller, out);
  if (own?.untagged || (own && takesTags)) return undefined;
  const other = own === undefined ? pvidOf(traveller, port) : undefined;
  const text = own !== undefined
    ? `frames of VLAN ${vlan} leave by ${port.name} with a tag`
    : `the frame is in VLAN ${vlan} of ${bridge.name}, and ${port.name} in ${other === undefined ? "none" : other}`;
  // Who is in another VLAN is so on purpose. `repair` does not look at the tag.
  const mend = other === undefined
    ? mended(port, bridge, { vlan, whose: own === undefined ? whose : undefined })
    : [];
  return stopped(traveller, { code: "vlan-mismatch", what: port.name, text, mend });
}

function mended(port: Link, bridge: Link, { vlan, whose }: Wanted): Remedy[] {
  const repair = whose === undefined ? [] : repairOf(whose);
  if (repair.length > 0 || vlan === undefined) return repair;
  const where = port.index === bridge.index ? shell`${port.name} self` : shell`${port.name}`;
  return [{ run: `bridge vlan add vid ${vlan} dev ${where} pvid untagged` }];
}

/** A VLAN link of the host upon a bridge, which sends and takes frames with its tag. */
export function tagOfLink({ kind, kindData }: Link): number | undefined {
  return kind === "vlan" && kindData !== undefined ? vlanFormat.settings(kindData).id : undefined;
}

export function bridgeBelow(netns: NetnsFacts, { kind, link }: Link): Link | undefined {
  const below = kind === "vlan" && link !== undefined ? linkAt(netns, link) : undefined;
  return below?.kind === "bridge" ? below : undefined;
}

/** Undefined when the bridge takes the host's frames of the tag, and gives the host those that come. */
export function tagRefused(traveller: Traveller, by: Link, bridge: Link): Move[] | undefined {
  const tag = tagOfLink(by);
  if (bridge.vlanFiltering && traveller.netns.vlansOf(bridge).some(({ first }) => first === tag)) return undefined;
  const text = bridge.vlanFiltering
    ? `${bridge.name} itself is not in VLAN ${tag}, which ${by.name} is for`
    : `${by.name} sends VLAN ${tag} with a tag, and ${bridge.name} does not filter VLANs, so the tag stays`;
  const mend = bridge.vlanFiltering
    ? [{ run: shell`bridge vlan add vid ${String(tag)} dev ${bridge.name} self` }]
    : [];
  return stopped(traveller, { code: "vlan-mismatch", what: by.name, text, mend });
}
