/** The configuration of the ptp plugin. */
import { z } from "zod";
import { commonKeys, ipMasqBackend, linkMtu } from "../../../cni/config.schema.ts";

export type PtpConf = z.infer<typeof ptpConf>;

export const ptpConf = z.object({
  ...commonKeys,
  ipMasq: z.boolean().default(false).describe("Hide the container's addresses behind the host's."),
  ipMasqBackend,
  mtu: linkMtu.describe("The MTU of both ends of the pair; 0 keeps the kernel's."),
}).meta({ title: "CNI ptp plugin configuration", required: ["cniVersion", "name", "type", "ipam"] });
