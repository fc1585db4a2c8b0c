/** The network and its ports with netavark's firewall driver `firewalld`. */
import { firewalldNetwork } from "../../../resources/netavark/firewalld-network.ts";
import { firewalldPorts } from "../../../resources/netavark/firewalld-ports.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { PublishedPortsSpec } from "../../../resources/netavark/published-ports.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/network-rules-spec.ts";

export function network({ bridge, subnets, dnsPort, dnsServers }: NetworkRulesSpec): Resource<unknown> {
  return firewalldNetwork({ bridge, subnets, dnsPort, dnsServers });
}

export function ports(spec: PublishedPortsSpec): Resource<unknown> {
  return firewalldPorts(spec);
}
