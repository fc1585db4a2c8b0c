/** The part of a network configuration that static reads. */
import { z } from "zod";
import { address, cidrOr, dns, ipamPluginKeys, route } from "../../../cni/config.schema.ts";

const requestedIps = z.array(cidrOr((text) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${text}'`));

export type StaticConf = z.infer<typeof staticConf>;

export const staticConf = z.object({
  ...ipamPluginKeys,
  ipam: z.object({
    type: z.string().default(""),
    addresses: z.array(z.object({
      address: cidrOr((text) => `the 'address' field is expected to be in CIDR notation, got: '${text}'`),
      gateway: address.optional(),
    })).optional().describe("The container's addresses."),
    routes: z.array(route).optional().describe("Passed on in the result."),
    dns: dns.optional().describe("Passed on in the result."),
  }).optional(),
  runtimeConfig: z.object({ ips: requestedIps.optional() }).optional(),
  args: z.object({ cni: z.object({ ips: requestedIps.optional() }).optional() }).optional(),
}).meta({ title: "CNI network configuration with static IPAM", required: ["cniVersion", "name", "ipam"] });
