/** What decides over the rules of a network of podman's. */
export interface NetworkRulesSpec {
  /** Its name. */
  network: string;
  networkId: string;
  bridge: string;
  subnets: RuledSubnet[];
  isInternal: boolean;
  /** Which other networks' containers its containers reach: all; those that are not isolated; none. */
  isolation: "never" | "normal" | "strict";
  dnsPort: number;
  /** Where containers ask for names; empty when the network has no DNS. */
  dnsServers: string[];
  /** The source address of connections that leave the network, instead of the outgoing link's. */
  outbound4?: string;
  outbound6?: string;
}

/** `subnet` as configured: the names of chains come from it. */
export interface RuledSubnet {
  subnet: string;
}
