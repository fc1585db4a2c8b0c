/** The configuration of the ipvlan plugin. */
import { z } from "zod";
import { commonKeys, linkMtu } from "../../../cni/config.schema.ts";

export type IpvlanConf = z.infer<typeof ipvlanConf>;

export const ipvlanConf = z.object({
  ...commonKeys,
  master: z.string().default("").describe(
    "The link it stands on; in a chain that of the plugin before, else the default route's, unless said otherwise.",
  ),
  mode: z.string().default("").meta({
    description: "On which layer it joins its master; l2 unless said otherwise.",
    enum: ["l2", "l3", "l3s", ""],
  }),
  mtu: linkMtu.describe("0 stands for the master's."),
  linkInContainer: z.boolean().default(false).describe("The master is in the container's namespace."),
}).meta({ title: "CNI ipvlan plugin configuration", required: ["cniVersion", "name", "type"] });
