// Generated from firewall.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { FirewallConf } from "./firewall.schema.ts";

export function validateFirewallConf(document: unknown): FirewallConf {
  return decoding("failed to load netconf", () => firewallConf(document ?? {}, ""));
}

type FirewallConfShape = CommonKeysShape & {
  "backend": string;
  "iptablesAdminChainName": string;
  "firewalldZone": string;
  "ingressPolicy": string;
};

function firewallConf(document: unknown, at: string): FirewallConfShape {
  const source = object(document, at);
  const out: Partial<FirewallConfShape> = { "cniVersion": "0.1.0", "type": "", "backend": "", "iptablesAdminChainName": "", "firewalldZone": "", "ingressPolicy": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "backend":
        out.backend = string(value, inside(at, "backend"));
        break;
      case "iptablesadminchainname":
        out.iptablesAdminChainName = string(value, inside(at, "iptablesAdminChainName"));
        break;
      case "firewalldzone":
        out.firewalldZone = string(value, inside(at, "firewalldZone"));
        break;
      case "ingresspolicy":
        out.ingressPolicy = string(value, inside(at, "ingressPolicy"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as FirewallConfShape;
}
