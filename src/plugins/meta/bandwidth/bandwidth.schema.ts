/** The configuration of the bandwidth plugin. */
import { z } from "zod";
import { commonKeys, runtimeConfigOf } from "../../../cni/config.schema.ts";

const bits = z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
const subnets = z.array(z.string()).optional();

const limits = {
  ingressRate: bits.describe("The rate at which the container may receive, in bits per second; 0 for no limit."),
  ingressBurst: bits.describe("The size of a burst, in bits; each rate above 0 needs its own."),
  egressRate: bits.describe("The rate at which the container may send, in bits per second; 0 for no limit."),
  egressBurst: bits.describe("The size of a burst, in bits; each rate above 0 needs its own."),
  unshapedSubnets: subnets.describe("Traffic with these subnets is not limited."),
  shapedSubnets: subnets.describe("Only traffic with these subnets is limited."),
};

export type BandwidthConf = z.infer<typeof bandwidthConf>;

export const bandwidthConf = z.object({
  ...commonKeys,
  ...limits,
  runtimeConfig: runtimeConfigOf({
    bandwidth: z.object(limits).optional().describe(
      "Limits that the container asks for, where the network has none.",
    ),
  }),
}).meta({ title: "CNI bandwidth plugin configuration", required: ["cniVersion", "name", "type"] });
