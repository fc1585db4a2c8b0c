/** Where another switch or another table of routes decides, which is not walked. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { linkAt, type NetnsFacts, type World } from "../facts.ts";
import { type Move, type Remedy, stopped, type Traveller } from "./traveller.ts";

/** In a process (datapath_type=netdev), it shows in the record of the container alone whose link it is. */
export function isPortOfOpenVswitch(world: World, netns: NetnsFacts, link: Link): boolean {
  return masterOf(netns, link)?.kind === "openvswitch" || (netns === world.host && world.isSwitched(link));
}

export function byOpenVswitch(traveller: Traveller, port: Link): Move[] {
  const text = `${port.name} is a port of Open vSwitch, whose flows decide`;
  return stopped(traveller, { code: "other-switch", what: port.name, text, mend: askSwitch(port) }, "unknown");
}

/** What the host sends to a container of Open vSwitch by a link that may lead there; undefined for another link. */
export function intoOpenVswitch(traveller: Traveller, link: Link, whose: string): Move[] | undefined {
  if (!mayBeOfSwitch(traveller.netns, link)) return undefined;
  const text = `${whose}; whether ${link.name} leads there, flows of Open vSwitch decide`;
  return stopped(traveller, { code: "other-switch", what: link.name, text, mend: askSwitch(link) }, "unknown");
}

/** An internal port of Open vSwitch, or a VLAN of one; in a process, the kernel knows it for a tap. */
function mayBeOfSwitch(host: NetnsFacts, link: Link): boolean {
  const { kind } = (link.kind === "vlan" && link.link && linkAt(host, link.link)) || link;
  return kind === "openvswitch" || kind === "tun";
}

function askSwitch({ name }: Link): Remedy[] {
  return [{ advice: `ask it: ovs-appctl ofproto/trace BRIDGE in_port=${name}` }];
}

export function vrfOf(netns: NetnsFacts, link: Link): Link | undefined {
  const master = masterOf(netns, link);
  return master?.kind === "vrf" ? master : undefined;
}

export function byVrf(traveller: Traveller, link: Link, vrf: Link): Move[] {
  const text = `${link.name} is in the VRF ${vrf.name}, whose way is not walked`;
  return stopped(traveller, { code: "other-switch", what: link.name, text }, "unknown");
}

function masterOf(netns: NetnsFacts, { master }: Link): Link | undefined {
  return master === undefined ? undefined : linkAt(netns, master);
}
