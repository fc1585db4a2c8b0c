/** The configuration of the vlan plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type VlanConf = z.infer<typeof vlanConf>;

export const vlanConf = z.object({
  ...commonKeys,
  master: z.string().default("").meta({ description: "The link whose tagged frames it receives.", minLength: 1 }),
  vlanId: z.int().default(0).meta({
    description: "The 802.1Q tag. A master has at most one link for each.",
    minimum: 0,
    maximum: 4094,
  }),
  mtu: z.int().default(0).describe("At most the master's MTU; 0 means the master's."),
  linkInContainer: z.boolean().default(false).describe("The master is in the container's namespace."),
}).meta({ title: "CNI vlan plugin configuration", required: ["cniVersion", "name", "type", "master"] });
