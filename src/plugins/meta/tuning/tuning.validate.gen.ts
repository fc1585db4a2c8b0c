// Generated from tuning.schema.ts by compile/validators.ts; change those.
import { anything, boolean, decoding, foldKey, inside, integer, list, map, missing, object, string } from "../../../cni/decode.ts";
import { type DnsShape, type IpamTypeShape, type ValidAttachmentShape, dns, ipamType, validAttachment } from "../../../cni/config.validate.gen.ts";
import type { TuningConf } from "./tuning.schema.ts";

export function validateTuningConf(document: unknown): TuningConf {
  return decoding("failed to load netconf", () => tuningConf(document ?? {}, ""));
}

type TuningConfArgsCniShape = {
  "sysctl"?: Record<string, string>;
  "mac"?: string;
  "promisc"?: boolean;
  "mtu"?: number;
  "allmulti"?: boolean;
  "txQLen"?: number;
};

function tuningConfArgsCni(document: unknown, at: string): TuningConfArgsCniShape {
  const source = object(document, at);
  const out: Partial<TuningConfArgsCniShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "sysctl":
        out.sysctl = map(value, inside(at, "sysctl"), string);
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "promisc":
        out.promisc = boolean(value, inside(at, "promisc"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "allmulti":
        out.allmulti = boolean(value, inside(at, "allmulti"));
        break;
      case "txqlen":
        out.txQLen = integer(value, inside(at, "txQLen"));
        break;
    }
  }
  return out as TuningConfArgsCniShape;
}

type TuningConfArgsShape = {
  "cni"?: TuningConfArgsCniShape;
};

function tuningConfArgs(document: unknown, at: string): TuningConfArgsShape {
  const source = object(document, at);
  const out: Partial<TuningConfArgsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cni":
        out.cni = tuningConfArgsCni(value, inside(at, "cni"));
        break;
    }
  }
  return out as TuningConfArgsShape;
}

type TuningConfRuntimeConfigShape = {
  "mac"?: string;
};

function tuningConfRuntimeConfig(document: unknown, at: string): TuningConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<TuningConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as TuningConfRuntimeConfigShape;
}

type TuningConfShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: TuningConfArgsShape;
  "runtimeConfig"?: TuningConfRuntimeConfigShape;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
  "sysctl"?: Record<string, string>;
  "mac"?: string;
  "promisc"?: boolean;
  "mtu"?: number;
  "allmulti"?: boolean;
  "txQLen"?: number;
  "dataDir": string;
};

function tuningConf(document: unknown, at: string): TuningConfShape {
  const source = object(document, at);
  const out: Partial<TuningConfShape> = { "cniVersion": "0.1.0", "type": "", "dataDir": "" };
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
        out.args = tuningConfArgs(value, inside(at, "args"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = tuningConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "prevresult":
        out.prevResult = map(value, inside(at, "prevResult"), anything);
        break;
      case "cni.dev/valid-attachments":
        out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
        break;
      case "sysctl":
        out.sysctl = map(value, inside(at, "sysctl"), string);
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "promisc":
        out.promisc = boolean(value, inside(at, "promisc"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "allmulti":
        out.allmulti = boolean(value, inside(at, "allmulti"));
        break;
      case "txqlen":
        out.txQLen = integer(value, inside(at, "txQLen"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as TuningConfShape;
}
