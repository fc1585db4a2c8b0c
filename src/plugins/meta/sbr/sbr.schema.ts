/** The configuration of the sbr plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type SbrConf = z.infer<typeof sbrConf>;

export const sbrConf = z.object({
  ...commonKeys,
  table: z.int().optional().meta({
    minimum: 1,
    maximum: 0xffffffff,
    description: "A routing table that already has routes: only rules that lead to it are made.",
  }),
  gateways: z.array(z.string()).optional().meta({
    maxItems: 2,
    description: "The gateways in the addresses' tables, one per family, instead of the addresses' own.",
  }),
  addSourceHints: z.boolean().default(false).describe(
    "Keep the routes to the link's own subnets in the main table, with the address as preferred source.",
  ),
}).meta({ title: "CNI sbr plugin configuration", required: ["cniVersion", "name", "type"] });
