// Generated from host-device.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, foldKey, inside, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
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

type HostDeviceConfShape = Omit<CommonKeysShape, "runtimeConfig"> & {
  "runtimeConfig"?: HostDeviceConfRuntimeConfigShape;
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
    const folded = foldKey(key);
    switch (folded) {
      case "runtimeconfig":
        out.runtimeConfig = hostDeviceConfRuntimeConfig(value, inside(at, "runtimeConfig"));
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
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as HostDeviceConfShape;
}
