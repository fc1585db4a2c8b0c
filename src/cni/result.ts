/**
 * The result of ADD in its newest form (CNI spec 1.1.0, "Success"). Older forms exist only at the edges, in
 * result-versions.ts: everything inside works on this one.
 */

export interface Result {
  cniVersion: string;
  interfaces?: Interface[];
  ips?: IpConfig[];
  routes?: Route[];
  dns?: Dns;
}

export interface Interface {
  name: string;
  mac?: string;
  mtu?: number;
  /** CNI_NETNS word for word on container-side interfaces; absent on the host's side. */
  sandbox?: string;
  socketPath?: string;
  pciID?: string;
}

export interface IpConfig {
  /** Index into `interfaces`; some plugins leave it out or give -1. */
  interface?: number;
  /** In CIDR notation, host bits kept: `10.88.0.5/16`. */
  address: string;
  gateway?: string;
}

export interface Route {
  dst: string;
  gw?: string;
  mtu?: number;
  advmss?: number;
  priority?: number;
  table?: number;
  scope?: number;
}

export interface Dns {
  nameservers?: string[];
  domain?: string;
  search?: string[];
  options?: string[];
}
