/** Documents for `netavark create`. */
import type { Creation, PodmanNetwork } from "../../../src/interop/podman-documents/netavark.schema.ts";

export const ID = "5ca1ab1e".repeat(8);

/** A bridge network of which nothing is said; `used` and `options` are those of a host without networks. */
export function creation(
  network: Partial<PodmanNetwork> = {},
  used: Partial<Creation["used"]> = {},
  options: Partial<Creation["options"]> = {},
): Creation {
  return {
    network: {
      name: "orchard",
      id: ID,
      driver: "bridge",
      dns_enabled: true,
      internal: false,
      ipv6_enabled: false,
      ...network,
    },
    used: { interfaces: [], names: {}, subnets: [], ...used },
    options: {
      subnet_pools: [{ base: "10.89.0.0/16", size: 24 }, { base: "10.90.0.0/15", size: 24 }],
      default_interface_name: "podman",
      check_used_subnets: true,
      ...options,
    },
  };
}
