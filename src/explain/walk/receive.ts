/** What a link has received: for its bridge, for another switch, or for the IP of its namespace. */
import { aboveWith, attachedBy, linkAt, linkWith, type World } from "../facts.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { fromPort } from "./bridge.ts";
import { throughHook } from "./hooks.ts";
import { byProgram, notUp } from "./neighbours.ts";
import { byOpenVswitch, byVrf, isPortOfOpenVswitch, vrfOf } from "./other-switch.ts";
import { repairOf } from "../remedy.ts";
import { destinationOf, entering, type Move, stopped, type Traveller } from "./traveller.ts";
import { formatAddress } from "../../net/address.ts";

export function receive(world: World, traveller: Traveller, link: Link): Move[] {
  const down = notUp(traveller, link);
  if (down !== undefined) return down;
  const unseen = byProgram(world, traveller, link);
  if (unseen !== undefined) return unseen;
  return throughHook(traveller, { hook: "ingress", device: link.name, input: link }, (next) => {
    // A link of a container above this one takes what is for it, before the host does.
    const above = next.netns === world.host ? aboveWith(world, link, destinationOf(next)) : undefined;
    if (above !== undefined) return [{ to: "receive", traveller: entering(next, above.netns), link: above.link }];
    const master = link.master === undefined ? undefined : linkAt(next.netns, link.master);
    if (master?.kind === "bridge") return fromPort(world, next, link, master);
    const vrf = vrfOf(next.netns, link);
    if (vrf !== undefined) return byVrf(next, link, vrf);
    if (isPortOfOpenVswitch(world, next.netns, link)) return byOpenVswitch(next, link);
    return offTheBridge(world, next, link) ?? [{ to: "ip", traveller: next, link }];
  });
}

/** A pair's end whose gateway's address is on another link: the frame's receiver is not here. */
function offTheBridge(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  const { direction, netns, nextHop = destinationOf(traveller), tracked } = traveller, sender = tracked[0]?.netns;
  if (
    direction === "answer" || netns !== world.host || link.kind !== "veth" || sender === undefined ||
    !attachedBy(sender, link)?.kinds.includes("bridge-port")
  ) {
    return undefined;
  }
  if (linkWith(netns, nextHop) === link.index) return undefined;
  const text = `${link.name} is no port of a bridge any more, and ${formatAddress(nextHop)} is behind one`;
  return stopped(traveller, { code: "not-a-port", what: link.name, text, mend: repairOf(sender) });
}
