/**
 * The result of ADD in its newest form (CNI spec 1.1.0, "Success"). Only result-versions.ts knows older forms.
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
  /** CNI_NETNS verbatim for interfaces in the container; absent for those on the host. */
  sandbox?: string;
  socketPath?: string;
  pciID?: string;
}

export interface IpConfig {
  /** Index into `interfaces`; some plugins omit it or give -1. */
  interface?: number;
  /** In CIDR notation with host bits: `10.88.0.5/16`. */
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
