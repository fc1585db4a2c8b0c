/** The configuration of the tap plugin. */
import { z } from "zod";
import { capability, commonKeys, linkMtu, macAddress } from "../../../cni/config.schema.ts";

export type TapConf = z.infer<typeof tapConf>;

const id = (whose: string) =>
  z.int().min(0).max(4294967295).optional().describe(`The ${whose} that may open the tap; anybody's unless given.`);

export const tapConf = z.object({
  ...commonKeys,
  multiQueue: z.boolean().default(false).describe("Let programs open it several times, for a queue each."),
  mtu: linkMtu.describe("0 leaves the kernel's."),
  mac: macAddress.optional().describe("The hardware address; one is picked unless said otherwise."),
  owner: id("user"),
  group: id("group"),
  selinuxContext: z.string().default("").describe("The SELinux context in which the tap is made."),
  bridge: z.string().default("").describe("A bridge in the container that it becomes a port of."),
  runtimeConfig: z.object({ mac: capability.mac.optional() }).optional(),
}).meta({ title: "CNI tap plugin configuration", required: ["cniVersion", "name", "type"] });
