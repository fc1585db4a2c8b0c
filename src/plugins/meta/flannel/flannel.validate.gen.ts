// Generated from flannel.schema.ts by compile/validators.ts; change those.
import { anything, decoding, map, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { FlannelConf } from "./flannel.schema.ts";

const flannelConf = objectOf({
  ...commonKeys,
  ipam: (value, at) => map(value, at, anything),
  subnetFile: string,
  dataDir: string,
  delegate: (value, at) => map(value, at, anything),
}, { cniVersion: "0.1.0", type: "", subnetFile: "/run/flannel/subnet.env", dataDir: "/var/lib/cni/flannel" }, "name");

export function validateFlannelConf(document: unknown): FlannelConf {
  return decoding("failed to load netconf", () => flannelConf(document ?? {}, ""));
}
