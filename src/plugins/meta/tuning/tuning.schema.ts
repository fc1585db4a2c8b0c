/** The configuration of the tuning plugin. */
import { z } from "zod";
import { argsOf, capability, commonKeys, macAddress, runtimeConfigOf } from "../../../cni/config.schema.ts";

const settings = {
  sysctl: z.record(z.string(), z.string()).optional().describe(
    "Values by key, such as net.core.somaxconn. IFNAME in a key stands for the interface.",
  ),
  mac: macAddress.optional().describe("The interface's hardware address."),
  promisc: z.boolean().optional().describe("Put the interface into promiscuous mode; false changes nothing."),
  mtu: z.int().optional().meta({
    minimum: 0,
    maximum: 65535,
    description: "The interface's MTU; 0 changes nothing.",
  }),
  allmulti: z.boolean().optional().describe("Switch all-multicast mode on or off."),
  txQLen: z.int().optional().meta({ minimum: 0, description: "The length of the interface's transmit queue." }),
};

export type TuningConf = z.infer<typeof tuningConf>;

export const tuningConf = z.object({
  ...commonKeys,
  ...settings,
  dataDir: z.string().default("").meta({
    description: "The directory of the previous settings.",
    default: "/run/cni/tuning",
  }),
  runtimeConfig: runtimeConfigOf({ mac: capability.mac.optional() }),
  args: argsOf(z.object(settings)),
}).meta({ title: "CNI tuning plugin configuration", required: ["cniVersion", "name", "type"] });
