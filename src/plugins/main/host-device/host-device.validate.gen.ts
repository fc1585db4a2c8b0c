// Generated from host-device.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { HostDeviceConf } from "./host-device.schema.ts";

export function validateHostDeviceConf(document: unknown): HostDeviceConf {
  return decoding("failed to load netconf", () => hostDeviceConf(document ?? {}, ""));
}

type HostDeviceConfIpamShape = {
  "type": string;
};

function hostDeviceConfIpam(document: unknown, at: string): HostDeviceConfIpamShape {
  const source = object(document, at);
  const out: Partial<HostDeviceConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as HostDeviceConfIpamShape;
}

type HostDeviceConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function hostDeviceConfDns(document: unknown, at: string): HostDeviceConfDnsShape {
  const source = object(document, at);
  const out: Partial<HostDeviceConfDnsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "nameservers":
        out.nameservers = list(value, inside(at, "nameservers"), string);
        break;
      case "domain":
        out.domain = string(value, inside(at, "domain"));
        break;
      case "search":
        out.search = list(value, inside(at, "search"), string);
        break;
      case "options":
        out.options = list(value, inside(at, "options"), string);
        break;
    }
  }
  return out as HostDeviceConfDnsShape;
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

type HostDeviceConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function hostDeviceConfCniDevValidAttachmentsItem(document: unknown, at: string): HostDeviceConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<HostDeviceConfCniDevValidAttachmentsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "containerid":
        out.containerID = string(value, inside(at, "containerID"));
        break;
      case "ifname":
        out.ifname = string(value, inside(at, "ifname"));
        break;
    }
  }
  if (out.containerID === undefined) throw missing(inside(at, "containerID"));
  if (out.ifname === undefined) throw missing(inside(at, "ifname"));
  return out as HostDeviceConfCniDevValidAttachmentsItemShape;
}

type HostDeviceConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: HostDeviceConfIpamShape;
  "dns"?: HostDeviceConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: HostDeviceConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<HostDeviceConfCniDevValidAttachmentsItemShape>;
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
        out.ipam = hostDeviceConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = hostDeviceConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), hostDeviceConfCniDevValidAttachmentsItem);
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
