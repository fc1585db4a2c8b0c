/** The configuration of the macvlan plugin. */
import { z } from "zod";
import { capability, commonKeys, macAddress } from "../../../cni/config.schema.ts";

export type MacvlanConf = z.infer<typeof macvlanConf>;

export const macvlanConf = z.object({
  ...commonKeys,
  master: z.string().default("").describe("The link it stands on; the default route's unless said otherwise."),
  mode: z.string().default("").meta({
    description: "How it reaches others on the same master; bridge unless said otherwise.",
    enum: ["bridge", "private", "vepa", "passthru", ""],
  }),
  mtu: z.int().default(0).describe("At most the master's; 0 stands for the master's."),
  mac: macAddress.optional().describe("The hardware address; one is picked unless said otherwise."),
  linkInContainer: z.boolean().default(false).describe("The master is in the container's namespace."),
  bcqueuelen: z.int().min(0).max(4294967295).default(0).describe(
    "How many broadcasts wait for the other links of the master; 0 leaves the kernel's.",
  ),
  runtimeConfig: z.object({ mac: capability.mac.optional() }).optional(),
}).meta({ title: "CNI macvlan plugin configuration", required: ["cniVersion", "name", "type"] });
