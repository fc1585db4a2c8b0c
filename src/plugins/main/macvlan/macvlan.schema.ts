/** The configuration of the macvlan plugin. */
import { z } from "zod";
import { capability, commonKeys, macAddress, runtimeConfigOf } from "../../../cni/config.schema.ts";

export type MacvlanConf = z.infer<typeof macvlanConf>;

export const macvlanConf = z.object({
  ...commonKeys,
  master: z.string().default("").describe("The link it is based on; by default that of the default route."),
  mode: z.string().default("").meta({
    description: "How it reaches other links of the same master.",
    default: "bridge",
    enum: ["bridge", "private", "vepa", "passthru", ""],
  }),
  mtu: z.int().default(0).describe("At most the master's MTU; 0 means the master's."),
  mac: macAddress.optional().describe("The hardware address; by default a random one."),
  linkInContainer: z.boolean().default(false).describe("The master is in the container's namespace."),
  bcqueuelen: z.int().min(0).max(4294967295).default(0).describe(
    "The length of the master's queue of broadcasts; 0 keeps the kernel's.",
  ),
  runtimeConfig: runtimeConfigOf({ mac: capability.mac.optional() }),
}).meta({ title: "CNI macvlan plugin configuration", required: ["cniVersion", "name", "type"] });
