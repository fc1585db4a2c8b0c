// Generated from loopback.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { LoopbackConf } from "./loopback.schema.ts";

export function validateLoopbackConf(document: unknown): LoopbackConf {
  return decoding("failed to load netconf", () => loopbackConf(document ?? {}, ""));
}

type LoopbackConfIpamShape = {
  "type": string;
};

function loopbackConfIpam(document: unknown, at: string): LoopbackConfIpamShape {
  const source = object(document, at);
  const out: Partial<LoopbackConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as LoopbackConfIpamShape;
}

type LoopbackConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function loopbackConfDns(document: unknown, at: string): LoopbackConfDnsShape {
  const source = object(document, at);
  const out: Partial<LoopbackConfDnsShape> = {};
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
  return out as LoopbackConfDnsShape;
}

type LoopbackConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function loopbackConfCniDevValidAttachmentsItem(document: unknown, at: string): LoopbackConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<LoopbackConfCniDevValidAttachmentsItemShape> = {};
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
  return out as LoopbackConfCniDevValidAttachmentsItemShape;
}

type LoopbackConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: LoopbackConfIpamShape;
  "dns"?: LoopbackConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<LoopbackConfCniDevValidAttachmentsItemShape>;
};

function loopbackConf(document: unknown, at: string): LoopbackConfShape {
  const source = object(document, at);
  const out: Partial<LoopbackConfShape> = { "cniVersion": "0.1.0", "type": "" };
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
        out.ipam = loopbackConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = loopbackConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), loopbackConfCniDevValidAttachmentsItem);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as LoopbackConfShape;
}
