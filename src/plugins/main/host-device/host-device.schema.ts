/** The configuration of the host-device plugin. */
import { z } from "zod";
import { capability, commonKeys, runtimeConfigOf } from "../../../cni/config.schema.ts";

export type HostDeviceConf = z.infer<typeof hostDeviceConf>;

export const hostDeviceConf = z.object({
  ...commonKeys,
  device: z.string().default("").describe("The device by its name: eth1."),
  hwaddr: z.string().default("").meta({
    description: "The device by its hardware address.",
    examples: ["0a:58:0a:f4:00:01"],
  }),
  kernelpath: z.string().default("").meta({
    description: "The device by its directory in sysfs.",
    examples: ["/sys/devices/pci0000:00/0000:00:1f.6"],
  }),
  pciBusID: z.string().default("").meta({
    description: "The device by its address on the PCI bus.",
    examples: ["0000:00:1f.6"],
  }),
  DPDKMode: z.boolean().default(false).describe(
    "Do not move the device. With a PCI address, the device's driver decides.",
  ),
  useInterfaceNetwork: z.boolean().default(false).describe(
    "The container gets the addresses that the device has on the host, its routes and the rules for these addresses.",
  ).meta({ since: "0.2.0" }),
  runtimeConfig: runtimeConfigOf({ deviceID: capability.deviceID.optional() }),
}).meta({ title: "CNI host-device plugin configuration", required: ["cniVersion", "name", "type"] });
