/** What addresses and routes a container gets, as far as the configuration says. */
import { field, isObject } from "../../cni/json.ts";
import { CniError, PLUGIN_NOT_AVAILABLE } from "../../cni/error.ts";
import type { Caveat, Written } from "../../contract/plugin.ts";
import { parsePrefix, type Prefix } from "../../net/address.ts";
import { whyNoV6 } from "../../resources/address/shared/disabled-v6.ts";

/** IPAM plugins whose routes the configuration has. */
const TELLING = ["host-local", "static"];

/** The reason and the remedy; undefined where something leads out, or where only ADD will tell. */
export function whyNoWayOut({ type, document }: Written): string | undefined {
  const ipam = field(document, "ipam");
  if (field(document, "isDefaultGateway") === true || !isObject(ipam) || !isTelling(ipam)) return undefined;
  const routes = textsIn(field(ipam, "routes"), "dst"), addresses = addressesOf(ipam);
  const lacks = (isOfFamily: (text: string) => boolean) => addresses.some(isOfFamily) && !routes.some(isOfFamily);
  const dst = lacks((text) => !text.includes(":")) ? "0.0.0.0/0" : lacks((text) => text.includes(":")) ? "::/0" : "";
  if (dst === "") return undefined;
  const family = dst.includes(":") ? "IPv6" : "IPv4",
    also = type === "bridge" ? ', or bridge "isDefaultGateway"' : "";
  return `no route of ${family} leads out of the container; "ipam" needs "routes": [{ "dst": "${dst}" }]${also}`;
}

/** What is to be said about `ipMasq`. */
export function masqueradeCaveats(written: Written): Caveat[] {
  const reason = whyNoWayOut(written);
  return reason === undefined ? [] : [{ key: "ipMasq", text: `has nothing to do: ${reason}` }];
}

/** The families of a container's addresses. Both where only ADD will tell. */
export function familiesOf(plugins: readonly Written[]): readonly (4 | 6)[] {
  const ipams = plugins.map(({ document }) => field(document, "ipam")).filter((ipam) => isObject(ipam));
  return ipams.length > 0 && ipams.every(isTelling) ? familiesIn(ipams) : [4, 6];
}

/** The subnets of a container's addresses, each as an address within it. None where only ADD will tell. */
export function subnetsOf(document: Readonly<Record<string, unknown>>): Prefix[] {
  const ipam = field(document, "ipam");
  return isObject(ipam) && isTelling(ipam) ? addressesOf(ipam).flatMap((text) => parsePrefix(text) ?? []) : [];
}

/** For plugins whose gateways are the host's: throws where this link of it takes no addresses of IPv6. */
export function requireV6Gateways(document: Readonly<Record<string, unknown>>, link: string): void {
  const ipam = field(document, "ipam");
  const why = isObject(ipam) && isTelling(ipam) && familiesIn([ipam]).includes(6) ? whyNoV6(link) : undefined;
  if (why !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, why);
}

function isTelling(ipam: Record<string, unknown>): boolean {
  return TELLING.includes(String(field(ipam, "type")));
}

function familiesIn(ipams: readonly Record<string, unknown>[]): readonly (4 | 6)[] {
  const addresses = ipams.flatMap(addressesOf);
  return ([4, 6] as const).filter((family) => addresses.some((text) => text.includes(":") === (family === 6)));
}

function addressesOf(ipam: Record<string, unknown>): string[] {
  const ranges = field(ipam, "ranges"), sets = Array.isArray(ranges) ? ranges : [];
  return [
    ...textsIn([ipam], "subnet"),
    ...sets.flatMap((set) => textsIn(set, "subnet")),
    ...textsIn(field(ipam, "addresses"), "address"),
  ];
}

function textsIn(list: unknown, key: string): string[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((one) => isObject(one) ? field(one, key) : []).filter((text) => typeof text === "string");
}
