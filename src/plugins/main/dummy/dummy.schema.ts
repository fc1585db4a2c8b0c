/** The configuration of the dummy plugin: nothing of its own. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type DummyConf = z.infer<typeof dummyConf>;

export const dummyConf = z.object(commonKeys).meta({
  title: "CNI dummy plugin configuration",
  required: ["cniVersion", "name", "type", "ipam"],
});
