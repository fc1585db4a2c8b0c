/** What `setup` returns to podman for one network; `podman inspect` shows it. */
export interface StatusBlock {
  dns_search_domains: readonly string[] | null;
  dns_server_ips: readonly string[] | null;
  interfaces: Readonly<Record<string, NetInterface>>;
}

export interface NetInterface {
  mac_address: string;
  subnets: readonly { gateway: string | null; ipnet: string }[] | null;
}
