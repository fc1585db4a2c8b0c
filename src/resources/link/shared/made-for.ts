/** The alias of a link on the host that a network's containers share: it says for which network Patchbay made it. */
import { fileName } from "../../../contract/file-name.ts";
import type { Link } from "../../../ffi/netlink/route/link.ts";

const MADE = "made by Patchbay";

/** The kernel takes 255 bytes. Ledgers of older builds do not say the network. */
export function aliasFor(network: string | undefined): string {
  return network === undefined ? MADE : `${MADE} for network ${fileName(network)}`;
}

/** Why a link with this alias is not the network's; undefined when it is. */
export function whyOthers({ alias }: Link, network: string): string | undefined {
  if (alias === aliasFor(network)) return undefined;
  if (alias === MADE) return "its alias does not say for which network Patchbay made it";
  const rest = alias?.startsWith(MADE) ? alias.slice(MADE.length) : "";
  return rest === "" ? "it was there before, or another program made it" : `Patchbay made it${rest}`;
}

/** The end with the address of a VLAN's gateway; it is named after the bridge (address/vlan-gateway.ts). */
export function isVlanGateway(link: Link, bridge: string | undefined, network: string): boolean {
  const { kind, linkNetnsId, alias, name } = link, [, start, vlan] = /^(.+)\.([1-9][0-9]{0,3})$/.exec(name) ?? [];
  return kind === "veth" && linkNetnsId === undefined && alias === aliasFor(network) && Number(vlan) <= 4094 &&
    (bridge === undefined || bridge === start);
}
