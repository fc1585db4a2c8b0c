/** Where another switch or another table of routes decides, which is not walked. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { linkAt, type NetnsFacts } from "../facts.ts";
import { type Move, stopped, type Traveller } from "./traveller.ts";

/** Whose it is does not show in the link where Open vSwitch runs in a process (datapath_type=netdev). */
export function isBehindOvs({ container }: NetnsFacts): boolean {
  return container?.kinds.includes("ovs-port") === true;
}

export function byOpenVswitch(traveller: Traveller, port: Link): Move[] {
  const text = `${port.name} is a port of Open vSwitch, whose flows decide`;
  const mend = [{ advice: `ask it: ovs-appctl ofproto/trace BRIDGE in_port=${port.name}` }];
  return stopped(traveller, { code: "other-switch", what: port.name, text, mend }, "unknown");
}

/** What the host sends to a container of Open vSwitch. */
export function intoOpenVswitch(traveller: Traveller, link: Link, label: string): Move[] {
  const text = `${label} is behind Open vSwitch, and whether ${link.name} leads there its flows decide`;
  return stopped(traveller, { code: "other-switch", what: link.name, text }, "unknown");
}

export function vrfOf(netns: NetnsFacts, { master }: Link): Link | undefined {
  const found = master === undefined ? undefined : linkAt(netns, master);
  return found?.kind === "vrf" ? found : undefined;
}

export function byVrf(traveller: Traveller, link: Link, vrf: Link): Move[] {
  const text = `${link.name} is in the VRF ${vrf.name}, whose way is not walked`;
  return stopped(traveller, { code: "other-switch", what: link.name, text }, "unknown");
}
