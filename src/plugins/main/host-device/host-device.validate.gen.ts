// Generated from host-device.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { HostDeviceConf } from "./host-device.schema.ts";

export function validateHostDeviceConf(document: unknown): HostDeviceConf {
  return decoding("failed to load netconf", () => hostDeviceConf(document ?? {}, ""));
}

type HostDeviceConfRuntimeConfigShape = {
  "deviceID"?: string;
};

function hostDeviceConfRuntimeConfig(document: unknown, at: string): HostDeviceConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<HostDeviceConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "deviceid":
        out.deviceID = string(value, inside(at, "deviceID"));
        break;
    }
  }
  return out as HostDeviceConfRuntimeConfigShape;
}

type HostDeviceConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: HostDeviceConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
  "device": string;
  "hwaddr": string;
  "kernelpath": string;
  "pciBusID": string;
  "DPDKMode": boolean;
};

function hostDeviceConf(document: unknown, at: string): HostDeviceConfShape {
  const source = object(document, at);
  const out: Partial<HostDeviceConfShape> = { "cniVersion": "0.1.0", "type": "", "device": "", "hwaddr": "", "kernelpath": "", "pciBusID": "", "DPDKMode": false };
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
        out.runtimeConfig = hostDeviceConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
        break;
      case "device":
        out.device = string(value, inside(at, "device"));
        break;
      case "hwaddr":
        out.hwaddr = string(value, inside(at, "hwaddr"));
        break;
      case "kernelpath":
        out.kernelpath = string(value, inside(at, "kernelpath"));
        break;
      case "pcibusid":
        out.pciBusID = string(value, inside(at, "pciBusID"));
        break;
      case "dpdkmode":
        out.DPDKMode = boolean(value, inside(at, "DPDKMode"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as HostDeviceConfShape;
}
