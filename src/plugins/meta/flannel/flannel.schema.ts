/** The configuration of the flannel plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type FlannelConf = z.infer<typeof flannelConf>;

const anyObject = z.record(z.string(), z.unknown());

export const flannelConf = z.object({
  ...commonKeys,
  subnetFile: z.string().default("/run/flannel/subnet.env").describe(
    "The file in which flanneld writes the node's subnets.",
  ),
  dataDir: z.string().default("/var/lib/cni/flannel").describe("The directory of the delegate's configurations."),
  delegate: anyObject.optional().describe("Further configuration of the delegate."),
  ipam: anyObject.optional().describe("Further configuration of the delegate's IPAM plugin."),
}).meta({ title: "CNI flannel plugin configuration", required: ["cniVersion", "name", "type"] });
