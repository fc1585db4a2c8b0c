// Generated from firewall.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { FirewallConf } from "./firewall.schema.ts";

export function validateFirewallConf(document: unknown): FirewallConf {
  return decoding("failed to load netconf", () => firewallConf(document ?? {}, ""));
}

type FirewallConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
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
    switch (foldKey(key)) {
      case "cniversion":
        out.cniVersion = string(value, inside(at, "cniVersion"));
        break;
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
      case "capabilities":
        out.capabilities = map(value, inside(at, "capabilities"), boolean);
        break;
      case "ipam":
        out.ipam = ipamType(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
        break;
      case "args":
        out.args = map(value, inside(at, "args"), anything);
        break;
      case "runtimeconfig":
        out.runtimeConfig = map(value, inside(at, "runtimeConfig"), anything);
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
        break;
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
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as FirewallConfShape;
}
