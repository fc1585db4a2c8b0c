/** The configuration of the ipvlan plugin. */
import { z } from "zod";
import { commonKeys, linkMtu } from "../../../cni/config.schema.ts";

export type IpvlanConf = z.infer<typeof ipvlanConf>;

export const ipvlanConf = z.object({
  ...commonKeys,
  master: z.string().default("").describe(
    "The link it is based on; by default the previous plugin's in a chain, otherwise the default route's.",
  ),
  mode: z.string().default("").meta({
    description: "The layer on which it joins its master.",
    default: "l2",
    enum: ["l2", "l3", "l3s", ""],
  }),
  mtu: linkMtu.describe("0 means the master's MTU."),
  linkInContainer: z.boolean().default(false).describe("The master is in the container's namespace."),
}).meta({ title: "CNI ipvlan plugin configuration", required: ["cniVersion", "name", "type"] });
