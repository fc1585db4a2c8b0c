/** The configuration of the sbr plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type SbrConf = z.infer<typeof sbrConf>;

export const sbrConf = z.object({
  ...commonKeys,
  table: z.int().optional().meta({
    minimum: 1,
    maximum: 0xffffffff,
    description: "A routing table that is already filled: only rules that lead to it are made.",
  }),
  gateways: z.array(z.string()).optional().meta({
    maxItems: 2,
    description: "The gateway of each address's table, one a family, in place of the address's own.",
  }),
  addSourceHints: z.boolean().default(false).describe(
    "Leave the ways to the link's own subnets in the main table, with the address to use for them.",
  ),
}).meta({ title: "CNI sbr plugin configuration", required: ["cniVersion", "name", "type"] });
