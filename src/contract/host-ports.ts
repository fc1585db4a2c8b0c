/** What a container asks for of the host's ports. */
export interface PortClaimant {
  network: string;
  containerId: string;
  way: PortWay;
  claims: PortClaim[];
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
