// Generated from dummy.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { DummyConf } from "./dummy.schema.ts";

export function validateDummyConf(document: unknown): DummyConf {
  return decoding("failed to load netconf", () => dummyConf(document ?? {}, ""));
}

type DummyConfIpamShape = {
  "type": string;
};

function dummyConfIpam(document: unknown, at: string): DummyConfIpamShape {
  const source = object(document, at);
  const out: Partial<DummyConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as DummyConfIpamShape;
}

type DummyConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function dummyConfDns(document: unknown, at: string): DummyConfDnsShape {
  const source = object(document, at);
  const out: Partial<DummyConfDnsShape> = {};
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
  return out as DummyConfDnsShape;
}

type DummyConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function dummyConfCniDevValidAttachmentsItem(document: unknown, at: string): DummyConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<DummyConfCniDevValidAttachmentsItemShape> = {};
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
  return out as DummyConfCniDevValidAttachmentsItemShape;
}

type DummyConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: DummyConfIpamShape;
  "dns"?: DummyConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<DummyConfCniDevValidAttachmentsItemShape>;
};

function dummyConf(document: unknown, at: string): DummyConfShape {
  const source = object(document, at);
  const out: Partial<DummyConfShape> = { "cniVersion": "0.1.0", "type": "" };
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
        out.ipam = dummyConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = dummyConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), dummyConfCniDevValidAttachmentsItem);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as DummyConfShape;
}
