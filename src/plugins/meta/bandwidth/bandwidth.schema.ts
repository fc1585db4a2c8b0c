/** The configuration of the bandwidth plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

const bits = z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
const subnets = z.array(z.string()).optional();

const limits = {
  ingressRate: bits.describe("What the container may receive, in bits a second; 0 for no limit."),
  ingressBurst: bits.describe("How much of it may come at once, in bits."),
  egressRate: bits.describe("What the container may send, in bits a second; 0 for no limit."),
  egressBurst: bits.describe("How much of it may come at once, in bits."),
  unshapedSubnets: subnets.describe("What is exchanged with these is not limited."),
  shapedSubnets: subnets.describe("Only what is exchanged with these is limited."),
};

export type BandwidthConf = z.infer<typeof bandwidthConf>;

export const bandwidthConf = z.object({
  ...commonKeys,
  ...limits,
  runtimeConfig: z.object({ bandwidth: z.object(limits).optional() }).optional(),
}).meta({ title: "CNI bandwidth plugin configuration", required: ["cniVersion", "name", "type"] });
