/** The configuration of the loopback plugin: nothing of its own. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type LoopbackConf = z.infer<typeof loopbackConf>;

export const loopbackConf = z.object(commonKeys).meta({
  title: "CNI loopback plugin configuration",
  required: ["cniVersion", "name", "type"],
});
