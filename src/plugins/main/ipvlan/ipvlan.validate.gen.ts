// Generated from ipvlan.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { IpvlanConf } from "./ipvlan.schema.ts";

export function validateIpvlanConf(document: unknown): IpvlanConf {
  return decoding("failed to load netconf", () => ipvlanConf(document ?? {}, ""));
}

type IpvlanConfIpamShape = {
  "type": string;
};

function ipvlanConfIpam(document: unknown, at: string): IpvlanConfIpamShape {
  const source = object(document, at);
  const out: Partial<IpvlanConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as IpvlanConfIpamShape;
}

type IpvlanConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function ipvlanConfDns(document: unknown, at: string): IpvlanConfDnsShape {
  const source = object(document, at);
  const out: Partial<IpvlanConfDnsShape> = {};
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
  return out as IpvlanConfDnsShape;
}

type IpvlanConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function ipvlanConfCniDevValidAttachmentsItem(document: unknown, at: string): IpvlanConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<IpvlanConfCniDevValidAttachmentsItemShape> = {};
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
  return out as IpvlanConfCniDevValidAttachmentsItemShape;
}

type IpvlanConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpvlanConfIpamShape;
  "dns"?: IpvlanConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<IpvlanConfCniDevValidAttachmentsItemShape>;
  "master": string;
  "mode": string;
  "mtu": number;
  "linkInContainer": boolean;
};

function ipvlanConf(document: unknown, at: string): IpvlanConfShape {
  const source = object(document, at);
  const out: Partial<IpvlanConfShape> = { "cniVersion": "0.1.0", "type": "", "master": "", "mode": "", "mtu": 0, "linkInContainer": false };
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
        out.ipam = ipvlanConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = ipvlanConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), ipvlanConfCniDevValidAttachmentsItem);
        break;
      case "master":
        out.master = string(value, inside(at, "master"));
        break;
      case "mode":
        out.mode = string(value, inside(at, "mode"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "linkincontainer":
        out.linkInContainer = boolean(value, inside(at, "linkInContainer"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as IpvlanConfShape;
}
