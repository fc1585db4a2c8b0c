// Generated from vlan.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { VlanConf } from "./vlan.schema.ts";

const vlanConf = objectOf({
  ...commonKeys,
  master: string,
  vlanId: integer,
  mtu: integer,
  linkInContainer: boolean,
}, { cniVersion: "0.1.0", type: "", master: "", vlanId: 0, mtu: 0, linkInContainer: false }, "name");

export function validateVlanConf(document: unknown): VlanConf {
  return decoding("failed to load netconf", () => vlanConf(document ?? {}, ""));
}
