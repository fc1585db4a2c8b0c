/** The configuration of the vrf plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type VrfConf = z.infer<typeof vrfConf>;

export const vrfConf = z.object({
  ...commonKeys,
  vrfname: z.string().default("").meta({
    minLength: 1,
    maxLength: 15,
    description: "The name of the VRF in the container, which is made if missing.",
  }),
  table: z.int().default(0).meta({
    minimum: 0,
    maximum: 0xffffffff,
    description: "The VRF's routing table; 0 picks an unused one.",
  }),
}).meta({ title: "CNI vrf plugin configuration", required: ["cniVersion", "name", "type", "vrfname"] });
