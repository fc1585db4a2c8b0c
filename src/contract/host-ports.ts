/** What a container asks for of the host's ports. */
export interface PortClaimant {
  network: string;
  containerId: string;
  way: PortWay;
  claims: PortClaim[];
  /** Ports that nobody reaches the container by, if there are any, and in which families it has an address. */
  unreached?: { ports: UnreachedPort[]; families: (4 | 6)[] };
}

export interface UnreachedPort {
  protocol: string;
  port: number;
  /** Without it, the port is asked for at all addresses. */
  hostIp?: string;
}

/** Who leads the port to the container: rules of iptables, a table of ours, or podman's table. */
export type PortWay = "iptables" | "nftables" | "netavark";

export interface PortClaim {
  family: 4 | 6;
  protocol: "tcp" | "udp" | "sctp";
  port: number;
  /** The one address of the host that it is for. */
  at?: Uint8Array;
}
