// Generated from sbr.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { SbrConf } from "./sbr.schema.ts";

export function validateSbrConf(document: unknown): SbrConf {
  return decoding("failed to load netconf", () => sbrConf(document ?? {}, ""));
}

type SbrConfIpamShape = {
  "type": string;
};

function sbrConfIpam(document: unknown, at: string): SbrConfIpamShape {
  const source = object(document, at);
  const out: Partial<SbrConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as SbrConfIpamShape;
}

type SbrConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function sbrConfDns(document: unknown, at: string): SbrConfDnsShape {
  const source = object(document, at);
  const out: Partial<SbrConfDnsShape> = {};
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
  return out as SbrConfDnsShape;
}

type SbrConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function sbrConfCniDevValidAttachmentsItem(document: unknown, at: string): SbrConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<SbrConfCniDevValidAttachmentsItemShape> = {};
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
  return out as SbrConfCniDevValidAttachmentsItemShape;
}

type SbrConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: SbrConfIpamShape;
  "dns"?: SbrConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<SbrConfCniDevValidAttachmentsItemShape>;
  "table"?: number;
  "gateways"?: Array<string>;
  "addSourceHints": boolean;
};

function sbrConf(document: unknown, at: string): SbrConfShape {
  const source = object(document, at);
  const out: Partial<SbrConfShape> = { "cniVersion": "0.1.0", "type": "", "addSourceHints": false };
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
        out.ipam = sbrConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = sbrConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), sbrConfCniDevValidAttachmentsItem);
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      case "gateways":
        out.gateways = list(value, inside(at, "gateways"), string);
        break;
      case "addsourcehints":
        out.addSourceHints = boolean(value, inside(at, "addSourceHints"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as SbrConfShape;
}
