// Generated from ptp.schema.ts by compile/validators.ts; change those.
import { anything, boolean, choice, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { PtpConf } from "./ptp.schema.ts";

export function validatePtpConf(document: unknown): PtpConf {
  return decoding("failed to load netconf", () => ptpConf(document ?? {}, ""));
}

type PtpConfShape = {
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
  "ipMasq": boolean;
  "ipMasqBackend"?: "iptables" | "nftables" | "";
  "mtu": number;
};

function ptpConf(document: unknown, at: string): PtpConfShape {
  const source = object(document, at);
  const out: Partial<PtpConfShape> = { "cniVersion": "0.1.0", "type": "", "ipMasq": false, "mtu": 0 };
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
      case "ipmasq":
        out.ipMasq = boolean(value, inside(at, "ipMasq"));
        break;
      case "ipmasqbackend":
        out.ipMasqBackend = choice(value, inside(at, "ipMasqBackend"), ["iptables","nftables",""] as const, (got) => `unknown ipmasq backend "${got}"`);
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as PtpConfShape;
}
