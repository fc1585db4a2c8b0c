// Generated from flannel.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type ValidAttachmentShape, dns, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { FlannelConf } from "./flannel.schema.ts";

export function validateFlannelConf(document: unknown): FlannelConf {
  return decoding("failed to load netconf", () => flannelConf(document ?? {}, ""));
}

type FlannelConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: Record<string, unknown>;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
  "subnetFile": string;
  "dataDir": string;
  "delegate"?: Record<string, unknown>;
};

function flannelConf(document: unknown, at: string): FlannelConfShape {
  const source = object(document, at);
  const out: Partial<FlannelConfShape> = { "cniVersion": "0.1.0", "type": "", "subnetFile": "/run/flannel/subnet.env", "dataDir": "/var/lib/cni/flannel" };
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
        out.ipam = map(value, inside(at, "ipam"), anything);
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
      case "subnetfile":
        out.subnetFile = string(value, inside(at, "subnetFile"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
      case "delegate":
        out.delegate = map(value, inside(at, "delegate"), anything);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as FlannelConfShape;
}
