// Generated from bandwidth.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integerBetween, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";

export function validateBandwidthConf(document: unknown): BandwidthConf {
  return decoding("failed to load netconf", () => bandwidthConf(document ?? {}, ""));
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

type BandwidthConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: BandwidthConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
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
        out.ipam = ipamType(value, inside(at, "ipam"));
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
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
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
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
