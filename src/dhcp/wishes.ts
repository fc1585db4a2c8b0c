/** What the configuration and CNI_ARGS say about a lease. */
export interface Wishes {
  /** Option 61 in hexadecimal digits. Without it the server goes by the MAC address. */
  clientId?: string;
  /** Option 55. */
  wanted: number[];
  /** Option numbers, each with its value in hexadecimal digits. */
  provided: [number: number, hex: string][];
  broadcast: boolean;
  probe: Probe;
  /** Only these servers are believed; all when there is none. */
  servers: string[];
  denied: string[];
  onExpiry: "remove" | "down" | "keep";
  ignored: Ignored[];
  /** Of the routes that the service makes itself. */
  priority: number;
  /** Without it, the container gets no IPv4 address. */
  v4: boolean;
  v6?: V6Wishes;
  /** ADD fails without these. */
  required: FamilyName[];
  /** Seconds until ADD gives up. */
  timeout?: number;
  /** The link of the host through which the container's frames go. */
  hostLink?: string;
}

/** How thoroughly to find out whether another host has the address (RFC 5227). */
export type Probe = "none" | "fast" | "full";
export type Ignored = "routers" | "routes" | "dns" | "mtu";
export type FamilyName = "ipv4" | "ipv6";

/** Who the container is to DHCPv6 servers, in hexadecimal digits (RFC 8415 sections 11 and 12). */
export interface V6Wishes {
  duid: string;
  iaid: string;
}
