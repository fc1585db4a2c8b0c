/** The part of a network configuration that patchbay-cluster reads. */
import { z } from "zod";
import {
  addressOrCidr,
  argsOf,
  ipamKeys,
  ipamPluginKeys,
  ipamRouting,
  runtimeConfigOf,
} from "../../../cni/config.schema.ts";

const requestedIps = z.array(addressOrCidr).optional()
  .describe("Addresses to lease, instead of any that are free; each has to be in a block of this node.");

const poolName = z.string().meta({
  minLength: 1,
  maxLength: 63,
  pattern: "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
});

export type PatchbayClusterConf = z.infer<typeof patchbayClusterConf>;

export const patchbayClusterConf = z.object({
  ...ipamPluginKeys,
  ipam: ipamKeys({
    pool: poolName.optional().describe("The pool that addresses are leased from, one of each of its families."),
    pools: z.array(poolName).optional().describe("Several pools in place of one: addresses of each, in this order."),
    ...ipamRouting,
    dataDir: z.string().default("/var/lib/patchbay/pools")
      .describe(
        "The directory of the leases. ADD refuses one in which the agent of this host does not look for them.",
      ),
  }),
  runtimeConfig: runtimeConfigOf({ ips: requestedIps }),
  args: argsOf(z.object({ ips: requestedIps })),
}).meta({
  title: "CNI network configuration with patchbay-cluster IPAM",
  required: ["cniVersion", "name", "ipam"],
});
