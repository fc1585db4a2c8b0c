/** The state of the firewall, in netavark's form. */
import type { NetavarkConf } from "../../../interop/podman-documents/netavark.schema.ts";
import { isV6 } from "../../../net/address.ts";
import type { FirewallStateSpec } from "../../../resources/netavark/firewall-state.ts";
import { firewallDirectory } from "../../../resources/netavark/shared/config-directory.ts";
import { networkHash } from "../../../resources/netavark/shared/netavark1-rules.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/nft-rules.ts";
import type { GivenAddress } from "../shared/addresses.ts";

/** netavark's words for the kinds of isolation. */
export const isolations = { strict: "Strict", normal: "Normal", never: "Never" } as const;

export function firewallStateOf(
  { network, port_mappings, configDirectory, firewall }: NetavarkConf,
  containerId: string,
  rules: NetworkRulesSpec,
  given: readonly GivenAddress[],
): FirewallStateSpec {
  const { bridge, dnsPort } = rules;
  const shared = { network_hash_name: networkHash(network.name), dns_port: dnsPort, internal: network.internal };
  const [v4, v6] = [false, true].map((wanted) => given.find(({ address }) => isV6(address) === wanted));
  const bare = (one: GivenAddress | undefined) => one?.address.slice(0, one.address.indexOf("/")) ?? null;
  return {
    directory: firewallDirectory(configDirectory),
    driver: firewall,
    bridge,
    networkId: network.id,
    containerId,
    network: {
      subnets: rules.subnets.map(({ subnet }) => subnet),
      bridge_name: bridge,
      network_id: network.id,
      isolation: isolations[rules.isolation],
      outbound_addr4: rules.outbound4,
      outbound_addr6: rules.outbound6,
      ...shared,
    },
    container: {
      container_id: containerId,
      network_id: network.id,
      port_mappings: port_mappings ?? null,
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
