// Generated from bandwidth.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integerBetween, list, map, missing, object, string } from "../../../cni/decode.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";

export function validateBandwidthConf(document: unknown): BandwidthConf {
  return decoding("failed to load netconf", () => bandwidthConf(document ?? {}, ""));
}

type BandwidthConfIpamShape = {
  "type": string;
};

function bandwidthConfIpam(document: unknown, at: string): BandwidthConfIpamShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfIpamShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as BandwidthConfIpamShape;
}

type BandwidthConfDnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

function bandwidthConfDns(document: unknown, at: string): BandwidthConfDnsShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfDnsShape> = {};
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
  return out as BandwidthConfDnsShape;
}

type BandwidthConfRuntimeConfigBandwidthShape = {
  "ingressRate"?: number;
  "ingressBurst"?: number;
  "egressRate"?: number;
  "egressBurst"?: number;
  "unshapedSubnets"?: Array<string>;
  "shapedSubnets"?: Array<string>;
};

function bandwidthConfRuntimeConfigBandwidth(document: unknown, at: string): BandwidthConfRuntimeConfigBandwidthShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfRuntimeConfigBandwidthShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ingressrate":
        out.ingressRate = integerBetween(value, inside(at, "ingressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "ingressburst":
        out.ingressBurst = integerBetween(value, inside(at, "ingressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressrate":
        out.egressRate = integerBetween(value, inside(at, "egressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressburst":
        out.egressBurst = integerBetween(value, inside(at, "egressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "unshapedsubnets":
        out.unshapedSubnets = list(value, inside(at, "unshapedSubnets"), string);
        break;
      case "shapedsubnets":
        out.shapedSubnets = list(value, inside(at, "shapedSubnets"), string);
        break;
    }
  }
  return out as BandwidthConfRuntimeConfigBandwidthShape;
}

type BandwidthConfRuntimeConfigShape = {
  "bandwidth"?: BandwidthConfRuntimeConfigBandwidthShape;
};

function bandwidthConfRuntimeConfig(document: unknown, at: string): BandwidthConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "bandwidth":
        out.bandwidth = bandwidthConfRuntimeConfigBandwidth(value, inside(at, "bandwidth"));
        break;
    }
  }
  return out as BandwidthConfRuntimeConfigShape;
}

type BandwidthConfCniDevValidAttachmentsItemShape = {
  "containerID": string;
  "ifname": string;
};

function bandwidthConfCniDevValidAttachmentsItem(document: unknown, at: string): BandwidthConfCniDevValidAttachmentsItemShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfCniDevValidAttachmentsItemShape> = {};
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
  return out as BandwidthConfCniDevValidAttachmentsItemShape;
}

type BandwidthConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: BandwidthConfIpamShape;
  "dns"?: BandwidthConfDnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: BandwidthConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<BandwidthConfCniDevValidAttachmentsItemShape>;
  "ingressRate"?: number;
  "ingressBurst"?: number;
  "egressRate"?: number;
  "egressBurst"?: number;
  "unshapedSubnets"?: Array<string>;
  "shapedSubnets"?: Array<string>;
};

function bandwidthConf(document: unknown, at: string): BandwidthConfShape {
  const source = object(document, at);
  const out: Partial<BandwidthConfShape> = { "cniVersion": "0.1.0", "type": "" };
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
        out.ipam = bandwidthConfIpam(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = bandwidthConfDns(value, inside(at, "dns"));
        break;
      case "args":
        out.args = map(value, inside(at, "args"), anything);
        break;
      case "runtimeconfig":
        out.runtimeConfig = bandwidthConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), bandwidthConfCniDevValidAttachmentsItem);
        break;
      case "ingressrate":
        out.ingressRate = integerBetween(value, inside(at, "ingressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "ingressburst":
        out.ingressBurst = integerBetween(value, inside(at, "ingressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressrate":
        out.egressRate = integerBetween(value, inside(at, "egressRate"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "egressburst":
        out.egressBurst = integerBetween(value, inside(at, "egressBurst"), 0, 9007199254740991, (got) => `${got} is not between 0 and 9007199254740991`);
        break;
      case "unshapedsubnets":
        out.unshapedSubnets = list(value, inside(at, "unshapedSubnets"), string);
        break;
      case "shapedsubnets":
        out.shapedSubnets = list(value, inside(at, "shapedSubnets"), string);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as BandwidthConfShape;
}
