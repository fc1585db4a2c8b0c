/** `create`: whether containers could be attached to the network, and what podman is to remember of it. */
import { foldKey } from "../../cni/json.ts";
import { isV6 } from "../../net/address.ts";
import { describeFinding, lintNetwork, lintText } from "../../runtime/lint/lint.ts";
import { networkProblems } from "../../runtime/network-summary.ts";
import type { Network } from "../wire/netavark.schema.ts";
import type { Addressing } from "./addressing.ts";
import { type Chosen, chosenNetwork, runtimeFor } from "./chosen-network.ts";
import { linkOf, type PluginConf } from "./option-chain.ts";

/** Keys that are left out keep what podman said. */
export function createNetwork(podman: Network): Network {
  const chosen = chosenNetwork(podman), { chain, addressing } = chosen;
  refuseUnused(podman, addressing);
  const { pluginPath } = runtimeFor(podman), problems = problemsOf(chosen, pluginPath);
  if (problems.length > 0) throw new Error(problems.join("; "));
  const { ipam_options, network_interface } = podman;
  const driver = addressing?.by === "podman" ? "host-local" : "none";
  return {
    ...podman,
    dns_enabled: false,
    network_interface: (chain && linkOf(chain)) ?? network_interface,
    options: { ...podman.options, ...addressing?.by === "plugin" && { "ipam.type": addressing.type } },
    ipam_options: { ...ipam_options, driver },
  };
}

/** What the network of a file, or its own IPAM plugin, would not look at. */
function refuseUnused(podman: Network, addressing: Addressing | undefined): void {
  const { subnets = [], routes = [], network_dns_servers = [], ipv6_enabled, internal, network_interface } = podman;
  const refuse = (what: string, why: string) => new Error(`${what}: ${why}`);
  if (network_dns_servers.length > 0) {
    throw refuse(`network_dns_servers ${network_dns_servers.join(", ")}`, "there is no DNS server for this network");
  }
  if (addressing === undefined) {
    const why = "the conflist says all of the network; change it in its file";
    if (internal) throw refuse("internal", why);
    if (network_interface) throw refuse(`network_interface "${network_interface}"`, why);
    const driver = podman.ipam_options?.["driver"] ?? "";
    if (!["", "none"].includes(driver)) throw refuse(`ipam driver "${driver}"`, why);
  }
  if (addressing?.by === "podman") {
    if (!ipv6_enabled || subnets.some(({ subnet }) => isV6(subnet))) return;
    throw refuse("ipv6_enabled", "no subnet is of IPv6: add --subnet with one, such as fd00:1::/64");
  }
  const why = addressing === undefined
    ? "the addresses are those of the conflist"
    : addressing.by === "nobody"
    ? "nobody gives the containers addresses"
    : `the addresses come from ipam.type=${addressing.type}`;
  if (subnets.length > 0) throw refuse(`subnet ${subnets.map(({ subnet }) => subnet).join(", ")}`, why);
  if (ipv6_enabled) throw refuse("ipv6_enabled", why);
  if (internal && addressing?.by === "plugin" && addressing.type !== "host-local") {
    throw refuse("internal", `the routes come from ipam.type=${addressing.type}`);
  }
  const takesRoutes = addressing?.by === "plugin" && addressing.type === "host-local" &&
    !addressing.settings.some(({ key }) => key === "routes");
  if (routes.length > 0 && !takesRoutes) throw refuse(`route ${routes[0]!.destination}`, why);
}

function problemsOf({ network, chain }: Chosen, pluginPath: string): string[] {
  const found = chain === undefined
    ? lintNetwork(network.path!, pluginPath).filter(({ severity }) => severity === "error").map(describeFinding)
    : lintText(network.source, pluginPath).filter(({ severity }) => severity !== "note")
      .map(({ key, message }) => `option ${optionOf(key, chain)}: ${message}`);
  return found.length > 0 ? found : networkProblems(network, pluginPath);
}

/** `plugins[0].mtu` by the name of its option. */
function optionOf(path: string, chain: readonly PluginConf[]): string {
  const [, index, key = ""] = /^plugins\[([0-9]+)\]\.(.*)$/.exec(path) ?? [];
  if (index === undefined) return path;
  return foldKey(key).startsWith("ipam.") ? key : `${chain[Number(index)]!.type}.${key}`;
}
