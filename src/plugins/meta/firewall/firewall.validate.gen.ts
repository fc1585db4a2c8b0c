// Generated from firewall.schema.ts by compile/validators.ts; change those.
import { decoding, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { FirewallConf } from "./firewall.schema.ts";

const firewallConf = objectOf({
  ...commonKeys,
  backend: string,
  iptablesAdminChainName: string,
  firewalldZone: string,
  ingressPolicy: string,
}, { cniVersion: "0.1.0", type: "", backend: "", iptablesAdminChainName: "", firewalldZone: "", ingressPolicy: "" }, "name");

export function validateFirewallConf(document: unknown): FirewallConf {
  return decoding("failed to load netconf", () => firewallConf(document ?? {}, ""));
}
