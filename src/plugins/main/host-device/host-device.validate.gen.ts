// Generated from host-device.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { HostDeviceConf } from "./host-device.schema.ts";

const hostDeviceConfRuntimeConfig = objectOf({
  deviceID: string,
}, {});

const hostDeviceConf = objectOf({
  ...commonKeys,
  runtimeConfig: hostDeviceConfRuntimeConfig,
  device: string,
  hwaddr: string,
  kernelpath: string,
  pciBusID: string,
  DPDKMode: boolean,
  useInterfaceNetwork: boolean,
}, { cniVersion: "0.1.0", type: "", device: "", hwaddr: "", kernelpath: "", pciBusID: "", DPDKMode: false, useInterfaceNetwork: false }, "name");

export function validateHostDeviceConf(document: unknown): HostDeviceConf {
  return decoding("failed to load netconf", () => hostDeviceConf(document ?? {}, ""));
}
