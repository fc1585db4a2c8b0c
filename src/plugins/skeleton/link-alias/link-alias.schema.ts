/** The configuration of the link-alias plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type LinkAliasConf = z.infer<typeof linkAliasConf>;

export const linkAliasConf = z.object({
  ...commonKeys,
  alias: z.string().default("").meta({
    minLength: 1,
    maxLength: 255,
    description: "The text that `ip link` shows beside the container's link.",
  }),
}).meta({ title: "CNI link-alias plugin configuration", required: ["cniVersion", "name", "type", "alias"] });
