// Generated from firewall.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { FirewallConf } from "./firewall.schema.ts";

export function validateFirewallConf(document: unknown): FirewallConf {
  return decoding("failed to load netconf", () => firewallConf(document ?? {}, ""));
}

type FirewallConfIpamShape = {
  "type": string;
};

function firewallConfIpam(document: unknown, at: string): FirewallConfIpamShape {
  const source = object(document, at);
  const out: Partial<FirewallConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as FirewallConfIpamShape;
}

type FirewallConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function firewallConfDns(document: unknown, at: string): FirewallConfDnsShape {
  const source = object(document, at);
  const out: Partial<FirewallConfDnsShape> = {};
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
  return out as FirewallConfDnsShape;
}

type FirewallConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function firewallConfCniDevValidAttachmentsItem(document: unknown, at: string): FirewallConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<FirewallConfCniDevValidAttachmentsItemShape> = {};
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
  return out as FirewallConfCniDevValidAttachmentsItemShape;
}

type FirewallConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: FirewallConfIpamShape;
  "dns"?: FirewallConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<FirewallConfCniDevValidAttachmentsItemShape>;
  "backend": string;
  "iptablesAdminChainName": string;
  "firewalldZone": string;
  "ingressPolicy": string;
};

function firewallConf(document: unknown, at: string): FirewallConfShape {
  const source = object(document, at);
  const out: Partial<FirewallConfShape> = { "cniVersion": "0.1.0", "type": "", "backend": "", "iptablesAdminChainName": "", "firewalldZone": "", "ingressPolicy": "" };
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
        out.ipam = firewallConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = firewallConfDns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), firewallConfCniDevValidAttachmentsItem);
        break;
      case "backend":
        out.backend = string(value, inside(at, "backend"));
        break;
      case "iptablesadminchainname":
        out.iptablesAdminChainName = string(value, inside(at, "iptablesAdminChainName"));
        break;
      case "firewalldzone":
        out.firewalldZone = string(value, inside(at, "firewalldZone"));
        break;
      case "ingresspolicy":
        out.ingressPolicy = string(value, inside(at, "ingressPolicy"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as FirewallConfShape;
}
