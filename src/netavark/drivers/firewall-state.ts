/** The state of the firewall, in netavark's form. */
import { isV6 } from "../../net/address.ts";
import type { FirewallStateSpec } from "../../resources/netavark/firewall-state.ts";
import { networkHash } from "../../resources/netavark/shared/netavark1-rules.ts";
import type { NetworkRulesSpec } from "../../resources/netavark/shared/network-rules-spec.ts";
import type { GivenAddress } from "./addressing.ts";
import type { DriverContext, Wanted } from "./driver.ts";

const isolations = { strict: "Strict", normal: "Normal", never: "Never" } as const;

/** Undefined where netavark keeps none: without rules of the network, and for users other than root. */
export function stateOf(
  { network, call }: Wanted,
  rules: NetworkRulesSpec,
  given: readonly GivenAddress[],
  { stateDirectory, dnsPort, firewall }: DriverContext,
): FirewallStateSpec | undefined {
  if (stateDirectory === undefined) return undefined;
  const shared = { network_hash_name: networkHash(network.name), dns_port: dnsPort, internal: network.internal };
  const [v4, v6] = [false, true].map((wanted) => given.find(({ address }) => isV6(address) === wanted));
  const bare = (one: GivenAddress | undefined) => one?.address.slice(0, one.address.indexOf("/")) ?? null;
  return {
    directory: stateDirectory,
    driver: firewall,
    bridge: rules.bridge,
    networkId: network.id,
    containerId: call.container_id,
    network: {
      subnets: rules.subnets.map(({ subnet }) => subnet),
      bridge_name: rules.bridge,
      network_id: network.id,
      isolation: isolations[rules.isolation],
      outbound_addr4: rules.outbound4,
      outbound_addr6: rules.outbound6,
      ...shared,
    },
    container: {
      container_id: call.container_id,
      network_id: network.id,
      port_mappings: call.port_mappings ?? null,
      network_name: network.name,
      container_ip_v4: bare(v4),
      subnet_v4: v4?.subnet ?? null,
      container_ip_v6: bare(v6),
      subnet_v6: v6?.subnet ?? null,
      dns_server_ips: rules.dnsServers,
      ...shared,
    },
  };
}
