/** The configuration of the flannel plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type FlannelConf = z.infer<typeof flannelConf>;

const anyObject = z.record(z.string(), z.unknown());

export const flannelConf = z.object({
  ...commonKeys,
  subnetFile: z.string().default("/run/flannel/subnet.env").describe("Where flanneld writes the node's subnets."),
  dataDir: z.string().default("/var/lib/cni/flannel").describe("Where each attachment's configuration is kept."),
  delegate: anyObject.optional().describe("What the plugin that does the work is to know beside the subnets."),
  ipam: anyObject.optional().describe("What its IPAM plugin is to know beside the ranges."),
}).meta({ title: "CNI flannel plugin configuration", required: ["cniVersion", "name", "type"] });
