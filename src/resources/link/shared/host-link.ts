/** Links of the host: whether it is still the one that the ledger names, for which network Patchbay made it. */
import type { Host } from "../../../contract/host.ts";
import { addHostsEntry } from "../../../ffi/netlink/route/bridge.ts";
import { getLink, type Link, setLink } from "../../../ffi/netlink/route/link.ts";
import { fileName } from "../../../contract/file-name.ts";
import { bridgeKind } from "../../../ffi/netlink/route/link-kinds.ts";
import { parseMac } from "../../../net/mac.ts";

/** The kernel reuses names and indexes of links; the MAC address tells whether it is still the same link. */
export interface HostLink {
  name: string;
  /** "" when it is not known: then the name decides. */
  mac: string;
}

/** Returns undefined when the link is gone, or another link has its name. */
export function findHostLink({ name, mac }: HostLink, host: Host): Link | undefined {
  const link = getLink(host.route, name);
  return link === undefined || (mac !== "" && link.mac !== mac) ? undefined : link;
}

/** The alias of a link that a network's containers share. */
export const MADE = "made by Patchbay";

/** The kernel takes 255 bytes. */
export function aliasFor(network: string): string {
  return `${MADE} for network ${fileName(network)}`;
}

/** Why a link with this alias is not the network's; undefined when it is. */
export function whyOthers({ alias }: Link, network: string): string | undefined {
  if (alias === aliasFor(network)) return undefined;
  const rest = alias?.startsWith(MADE) ? alias.slice(MADE.length) : "";
  return rest === "" ? "it was there before, or another program made it" : `Patchbay made it${rest}`;
}

/** The end with the address of a VLAN's gateway; it is named after the bridge (address/vlan-gateway.ts). */
export function isVlanGateway(link: Link, bridge: string | undefined, network: string): boolean {
  const { kind, linkNetnsId, alias, name } = link, [, start, vlan] = /^(.+)\.([1-9][0-9]{0,3})$/.exec(name) ?? [];
  return kind === "veth" && linkNetnsId === undefined && alias === aliasFor(network) && Number(vlan) <= 4094 &&
    (bridge === undefined || bridge === start);
}

/** The kernel's default. */
const DEFAULT_PRIORITY = 0x8000;

/**
 * Makes a bridge's address independent of its ports. Sets the address, and the priority to its present value. Setting a
 * priority makes the bridge look for a forwarding port and drop its carrier until there is one. Otherwise its
 * operational state would stay UNKNOWN.
 */
export function keepAddress(link: Link, host: Host, alias?: string): void {
  const address = parseMac(link.mac)!;
  setLink(host.route, link, { address, kind: bridgeKind({ priority: DEFAULT_PRIORITY }), alias });
  // Linux 5.10 has no entry for it until it changes the address, and would flood what is for the host to the ports.
  addHostsEntry(host.route, link, address);
}
