/**
 * Who gives addresses in a network that consists of options: podman from its subnets, an IPAM plugin, or nobody. What
 * podman has chosen goes into the container by the IPAM plugin `static`.
 */
import { contains, isV6, parseAddress, parsePrefix } from "../../net/address.ts";
import type { Network } from "../wire/netavark.schema.ts";
import { type Options, refused, type Setting } from "./options.ts";

export type Addressing =
  | { by: "podman" }
  | { by: "plugin"; type: string; settings: readonly Setting[] }
  | { by: "nobody" };

const HOW = "--subnet PREFIX (podman gives addresses), --opt ipam.type=host-local with ipam.subnet, " +
  "--ipam-driver dhcp, or --ipam-driver none";

export function addressingOf({ ipam_options, subnets = [] }: Network, { settings }: Options): Addressing {
  const driver = ipam_options?.["driver"] ?? "";
  if (!["", "host-local", "dhcp", "none"].includes(driver)) {
    throw new Error(`ipam driver "${driver}": it is not known; there are ${HOW}`);
  }
  const ipam = settings.filter(({ plugin }) => plugin === "ipam");
  const type = ipam.find(({ key }) => key === "type")?.value ?? (driver === "dhcp" ? "dhcp" : undefined);
  if (type === undefined && ipam.length > 0) {
    const { key, value } = ipam[0]!;
    throw refused(`ipam.${key}`, value, "ipam.type is missing, such as ipam.type=host-local");
  }
  if (type !== undefined) return { by: "plugin", type, settings: ipam.filter(({ key }) => key !== "type") };
  if (driver === "none") return { by: "nobody" };
  if (subnets.length === 0) throw new Error(`nobody gives the containers addresses: add ${HOW}`);
  return { by: "podman" };
}

/** The configuration of `static` for the addresses that podman gave a container, if it has. */
export function staticIpam(network: Network, addresses: readonly string[]): Record<string, unknown> {
  const routes = [...routesOf(network), ...(network.internal ? [] : defaultRoutes(network, addresses))];
  return { type: "static", addresses: addresses.map((address) => inSubnet(network, address)), routes };
}

function inSubnet({ subnets = [] }: Network, address: string): { address: string; gateway: string | undefined } {
  const bytes = parseAddress(address);
  if (bytes === undefined) throw new Error(`static_ips: "${address}" is not an IP address`);
  for (const { subnet, gateway } of subnets) {
    const prefix = parsePrefix(subnet);
    if (prefix === undefined) throw new Error(`subnets: "${subnet}" is not a subnet`);
    if (contains(prefix, bytes)) return { address: `${address}/${prefix.bits}`, gateway };
  }
  throw new Error(
    `static_ips: ${address} is in none of the subnets ${subnets.map(({ subnet }) => subnet).join(", ")}`,
  );
}

/** One for each family, by the first gateway, as netavark makes them. */
function defaultRoutes({ subnets = [] }: Network, addresses: readonly string[]): { dst: string; gw: string }[] {
  const gateways = subnets.flatMap(({ gateway }) => gateway ?? []);
  return [false, true].flatMap((v6) => {
    const gw = gateways.find((gateway) => isV6(gateway) === v6);
    if (gw === undefined || !addresses.some((address) => isV6(address) === v6)) return [];
    return [{ dst: v6 ? "::/0" : "0.0.0.0/0", gw }];
  });
}

/** The network's own routes, in the form of CNI. */
export function routesOf({ routes = [] }: Network): Record<string, unknown>[] {
  return routes.map(({ destination, gateway, metric, route_type }) => {
    if (route_type !== undefined && route_type !== "unicast") {
      throw new Error(`route ${destination}: type "${route_type}" has no form in CNI`);
    }
    return { dst: destination, gw: gateway, priority: metric };
  });
}
