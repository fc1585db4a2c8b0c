/** The part of a network configuration that static reads. */
import { z } from "zod";
import {
  address,
  argsOf,
  cidrOr,
  dns,
  ipamKeys,
  ipamPluginKeys,
  route,
  runtimeConfigOf,
} from "../../../cni/config.schema.ts";

const requestedIps = z.array(cidrOr((text) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${text}'`))
  .describe("Addresses in place of those of the network, each with the length of its prefix.");

export type StaticConf = z.infer<typeof staticConf>;

export const staticConf = z.object({
  ...ipamPluginKeys,
  ipam: ipamKeys({
    addresses: z.array(z.object({
      address: cidrOr((text) => `the 'address' field is expected to be in CIDR notation, got: '${text}'`)
        .describe("An address with the length of its subnet's prefix."),
      gateway: address.optional().describe("The subnet's gateway."),
    })).optional().describe("The container's addresses."),
    routes: z.array(route).optional().describe("Passed on in the result."),
    dns: dns.optional().describe("Passed on in the result."),
  }),
  runtimeConfig: runtimeConfigOf({ ips: requestedIps.optional() }),
  args: argsOf(z.object({ ips: requestedIps.optional() })),
}).meta({ title: "CNI network configuration with static IPAM", required: ["cniVersion", "name", "ipam"] });
