/** The configuration of the tap plugin. */
import { z } from "zod";
import { capability, commonKeys, linkMtu, macAddress, runtimeConfigOf } from "../../../cni/config.schema.ts";

export type TapConf = z.infer<typeof tapConf>;

const id = (whose: string) =>
  z.int().min(0).max(4294967295).optional().describe(`The ${whose} that may open the tap; by default any.`);

export const tapConf = z.object({
  ...commonKeys,
  multiQueue: z.boolean().default(false).describe("Let programs open it several times, each with its own queue."),
  mtu: linkMtu.describe("0 keeps the kernel's MTU."),
  mac: macAddress.optional().describe("The hardware address; by default a random one."),
  owner: id("user"),
  group: id("group"),
  selinuxContext: z.string().default("").describe("The SELinux context in which the tap is made."),
  bridge: z.string().default("").describe("A bridge in the container that gets the tap as a port."),
  runtimeConfig: runtimeConfigOf({ mac: capability.mac.optional() }),
}).meta({ title: "CNI tap plugin configuration", required: ["cniVersion", "name", "type"] });
