// Generated from vrf.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { VrfConf } from "./vrf.schema.ts";

export function validateVrfConf(document: unknown): VrfConf {
  return decoding("failed to load netconf", () => vrfConf(document ?? {}, ""));
}

type VrfConfIpamShape = {
  "type": string;
};

function vrfConfIpam(document: unknown, at: string): VrfConfIpamShape {
  const source = object(document, at);
  const out: Partial<VrfConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as VrfConfIpamShape;
}

type VrfConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function vrfConfDns(document: unknown, at: string): VrfConfDnsShape {
  const source = object(document, at);
  const out: Partial<VrfConfDnsShape> = {};
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
  return out as VrfConfDnsShape;
}

type VrfConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function vrfConfCniDevValidAttachmentsItem(document: unknown, at: string): VrfConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<VrfConfCniDevValidAttachmentsItemShape> = {};
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
  return out as VrfConfCniDevValidAttachmentsItemShape;
}

type VrfConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: VrfConfIpamShape;
  "dns"?: VrfConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<VrfConfCniDevValidAttachmentsItemShape>;
  "vrfname": string;
  "table": number;
};

function vrfConf(document: unknown, at: string): VrfConfShape {
  const source = object(document, at);
  const out: Partial<VrfConfShape> = { "cniVersion": "0.1.0", "type": "", "vrfname": "", "table": 0 };
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
        out.ipam = vrfConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = vrfConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), vrfConfCniDevValidAttachmentsItem);
        break;
      case "vrfname":
        out.vrfname = string(value, inside(at, "vrfname"));
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as VrfConfShape;
}
