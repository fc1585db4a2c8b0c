/** The part of a network configuration that host-local reads. */
import { z } from "zod";
import {
  addressOrCidr,
  addressRange,
  argsOf,
  capability,
  ipamKeys,
  ipamPluginKeys,
  ipamRouting,
  runtimeConfigOf,
} from "../../../cni/config.schema.ts";

const requestedIps = z.array(addressOrCidr).optional().describe("Addresses to lease, instead of any that are free.");

export type HostLocalConf = z.infer<typeof hostLocalConf>;

export const hostLocalConf = z.object({
  ...ipamPluginKeys,
  ipam: ipamKeys({
    ranges: z.array(z.array(addressRange)).optional()
      .describe("One list of ranges for each address to allocate."),
    ...addressRange.shape,
    ...ipamRouting,
    dataDir: z.string().default("/var/lib/cni/networks").describe("The directory of the leases."),
    quarantineSeconds: z.int().default(0).meta({
      description: "How long a released address is not leased again, unless it is requested.",
      minimum: 0,
    }),
    keepAcrossReboot: z.boolean().default(false)
      .describe("Leases stay valid after a reboot and are written to disk at once."),
  }),
  runtimeConfig: runtimeConfigOf({ ipRanges: capability.ipRanges.optional(), ips: requestedIps }),
  args: argsOf(z.object({ ips: requestedIps })),
}).meta({ title: "CNI network configuration with host-local IPAM", required: ["cniVersion", "name", "ipam"] });
