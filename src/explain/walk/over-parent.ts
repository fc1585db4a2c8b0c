/** Links above one parent, such as macvlan and ipvlan: they reach one another and what is outside, but not the host. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { macvlan } from "../../ffi/netlink/route/link-kinds.ts";
import { IFF_NOARP } from "../../ffi/netlink/uapi/if-link.ts";
import { formatAddress } from "../../net/address.ts";
import { aboveWith, isAddressOf, linkAt, type LinkIn, linkWith, sysctlFor, type World } from "../facts.ts";
import { notUp, toHolder } from "./neighbours.ts";
import { send } from "./send.ts";
import { destinationOf, entering, leaves, type Move, stopped, type Traveller } from "./traveller.ts";

export function isAboveParent({ kind }: Link): boolean {
  return kind === "macvlan" || kind === "ipvlan";
}

/** What a container's link sends. */
export function overParent(
  world: World,
  traveller: Traveller,
  link: Link,
  { link: parent }: LinkIn,
  nextHop: Uint8Array,
): Move[] {
  const at = entering(traveller, world.host);
  // In the modes of layer 3 an ipvlan asks no neighbour: the host routes what it sends.
  const isRouted = link.kind === "ipvlan" && (link.flags & IFF_NOARP) !== 0;
  const shim = isRouted ? undefined : hostsLinkBeside(world, parent, nextHop);
  if (shim !== undefined) {
    return apartByMode(at, parent, [link, shim]) ?? [{ to: "receive", traveller: at, link: shim }];
  }
  if (!isRouted && isAddressOf(world.host, nextHop)) {
    const text = `${kindText(link)} does not reach ${formatAddress(nextHop)} of its own host`;
    return stopped(at, { code: "macvlan-host", what: parent.name, text });
  }
  const down = notUp(at, parent);
  if (down !== undefined) return down;
  const beside = aboveWith(world, parent, isRouted ? destinationOf(traveller) : nextHop);
  if (beside !== undefined && isRouted) {
    return [{ to: "receive", traveller: entering(traveller, beside.netns), link: beside.link }];
  }
  if (beside !== undefined) return toBeside(world, traveller, link, parent, beside, nextHop);
  if (isRouted) return send({ ...at, nextHop: undefined }, true);
  return leaves(traveller, parent, `by ${parent.name}, with the MAC address of ${link.name}`, link);
}

/** What a link of the host's own sends to a container's above the same parent; undefined where none has the address. */
export function besideContainer(
  world: World,
  traveller: Traveller,
  link: Link,
  nextHop: Uint8Array,
): Move[] | undefined {
  const parent = isAboveParent(link) && link.link !== undefined ? linkAt(world.host, link.link) : undefined;
  const beside = parent && aboveWith(world, parent, nextHop);
  return beside && toBeside(world, traveller, link, parent!, beside, nextHop);
}

function toBeside(
  world: World,
  traveller: Traveller,
  link: Link,
  parent: Link,
  beside: LinkIn,
  nextHop: Uint8Array,
): Move[] {
  return apartByMode(traveller, parent, [link, beside.link]) ?? toHolder(world, traveller, link, beside, nextHop);
}

/**
 * What receives for the host above the same parent: a link of its own there answers who asks by ARP for any address of the
 * host. An ipvlan has its parent's MAC address, so what is not for an address of its own comes to the parent.
 */
function hostsLinkBeside({ host }: World, parent: Link, address: Uint8Array): Link | undefined {
  const beside = host.links().filter((each) => each.up && isAboveParent(each) && each.link === parent.index);
  const at = linkWith(host, address), exact = beside.find(({ index }) => index === at);
  if (exact !== undefined || at === undefined || address.length !== 4) return exact;
  const answers = beside.find((each) => sysctlFor(host, each, "arp_ignore") === 0);
  return answers?.kind === "ipvlan" ? parent : answers;
}

/** Undefined where the kernel itself takes the frame from one macvlan to the other. */
function apartByMode(traveller: Traveller, parent: Link, links: readonly Link[]): Move[] | undefined {
  const other = links.map(({ kind, kindData }) => kind === "macvlan" && kindData && macvlan.settings(kindData).mode)
    .find((mode) => mode && mode !== "bridge");
  if (!other) return undefined;
  const what = parent.name;
  return other === "vepa"
    ? stopped(
      traveller,
      { code: "other-switch", what, text: `the mode vepa leaves it to the switch behind ${what}` },
      "unknown",
    )
    : stopped(traveller, {
      code: "kept-apart",
      what,
      text: `the mode ${other} of macvlan keeps links above ${what} apart`,
    });
}

function kindText({ kind }: Link): string {
  return `${kind === "ipvlan" ? "an" : "a"} ${kind}`;
}
