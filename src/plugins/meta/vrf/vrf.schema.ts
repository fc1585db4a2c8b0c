/** The configuration of the vrf plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type VrfConf = z.infer<typeof vrfConf>;

export const vrfConf = z.object({
  ...commonKeys,
  vrfname: z.string().default("").meta({
    minLength: 1,
    maxLength: 15,
    description: "The VRF's name in the container; made when there is none.",
  }),
  table: z.int().default(0).meta({
    minimum: 0,
    maximum: 0xffffffff,
    description: "The VRF's routing table; 0 takes one that nobody uses.",
  }),
}).meta({ title: "CNI vrf plugin configuration", required: ["cniVersion", "name", "type", "vrfname"] });
