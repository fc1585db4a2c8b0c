// Generated from bridge.schema.ts by compile/validators.ts; change those.
import { boolean, choice, decoding, foldKey, inside, integerBetween, list, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { BridgeConf } from "./bridge.schema.ts";

export function validateBridgeConf(document: unknown): BridgeConf {
  return decoding("failed to load netconf", () => bridgeConf(document ?? {}, ""));
}

type BridgeConfArgsCniShape = {
  "mac"?: string;
};

function bridgeConfArgsCni(document: unknown, at: string): BridgeConfArgsCniShape {
  const source = object(document, at);
  const out: Partial<BridgeConfArgsCniShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as BridgeConfArgsCniShape;
}

type BridgeConfArgsShape = {
  "cni"?: BridgeConfArgsCniShape;
};

function bridgeConfArgs(document: unknown, at: string): BridgeConfArgsShape {
  const source = object(document, at);
  const out: Partial<BridgeConfArgsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cni":
        out.cni = bridgeConfArgsCni(value, inside(at, "cni"));
        break;
    }
  }
  return out as BridgeConfArgsShape;
}

type BridgeConfRuntimeConfigShape = {
  "mac"?: string;
};

function bridgeConfRuntimeConfig(document: unknown, at: string): BridgeConfRuntimeConfigShape {
  const source = object(document, at);
  const out: Partial<BridgeConfRuntimeConfigShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
    }
  }
  return out as BridgeConfRuntimeConfigShape;
}

type BridgeConfVlanTrunkItemShape = {
  "minID"?: number;
  "maxID"?: number;
  "id"?: number;
};

function bridgeConfVlanTrunkItem(document: unknown, at: string): BridgeConfVlanTrunkItemShape {
  const source = object(document, at);
  const out: Partial<BridgeConfVlanTrunkItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "minid":
        out.minID = integerBetween(value, inside(at, "minID"), 1, 4094, () => `incorrect trunk minID parameter`);
        break;
      case "maxid":
        out.maxID = integerBetween(value, inside(at, "maxID"), 1, 4094, () => `incorrect trunk maxID parameter`);
        break;
      case "id":
        out.id = integerBetween(value, inside(at, "id"), 1, 4094, () => `incorrect trunk id parameter`);
        break;
    }
  }
  return out as BridgeConfVlanTrunkItemShape;
}

type BridgeConfShape = Omit<CommonKeysShape, "args" | "runtimeConfig"> & {
  "args"?: BridgeConfArgsShape;
  "runtimeConfig"?: BridgeConfRuntimeConfigShape;
  "bridge": string;
  "isGateway": boolean;
  "isDefaultGateway": boolean;
  "forceAddress": boolean;
  "ipMasq": boolean;
  "ipMasqBackend"?: "iptables" | "nftables" | "";
  "mtu": number;
  "hairpinMode": boolean;
  "promiscMode": boolean;
  "vlan": number;
  "vlanTrunk"?: Array<BridgeConfVlanTrunkItemShape>;
  "preserveDefaultVlan": boolean;
  "macspoofchk": boolean;
  "enabledad": boolean;
  "disableContainerInterface": boolean;
  "portIsolation": boolean;
};

function bridgeConf(document: unknown, at: string): BridgeConfShape {
  const source = object(document, at);
  const out: Partial<BridgeConfShape> = { "cniVersion": "0.1.0", "type": "", "bridge": "cni0", "isGateway": false, "isDefaultGateway": false, "forceAddress": false, "ipMasq": false, "mtu": 0, "hairpinMode": false, "promiscMode": false, "vlan": 0, "preserveDefaultVlan": false, "macspoofchk": false, "enabledad": false, "disableContainerInterface": false, "portIsolation": false };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "args":
        out.args = bridgeConfArgs(value, inside(at, "args"));
        break;
      case "runtimeconfig":
        out.runtimeConfig = bridgeConfRuntimeConfig(value, inside(at, "runtimeConfig"));
        break;
      case "bridge":
        out.bridge = string(value, inside(at, "bridge"));
        break;
      case "isgateway":
        out.isGateway = boolean(value, inside(at, "isGateway"));
        break;
      case "isdefaultgateway":
        out.isDefaultGateway = boolean(value, inside(at, "isDefaultGateway"));
        break;
      case "forceaddress":
        out.forceAddress = boolean(value, inside(at, "forceAddress"));
        break;
      case "ipmasq":
        out.ipMasq = boolean(value, inside(at, "ipMasq"));
        break;
      case "ipmasqbackend":
        out.ipMasqBackend = choice(value, inside(at, "ipMasqBackend"), ["iptables","nftables",""] as const, (got) => `unknown ipmasq backend "${got}"`);
        break;
      case "mtu":
        out.mtu = integerBetween(value, inside(at, "mtu"), -9007199254740991, 4294967295, (got) => `${got} is not an MTU`);
        break;
      case "hairpinmode":
        out.hairpinMode = boolean(value, inside(at, "hairpinMode"));
        break;
      case "promiscmode":
        out.promiscMode = boolean(value, inside(at, "promiscMode"));
        break;
      case "vlan":
        out.vlan = integerBetween(value, inside(at, "vlan"), 0, 4094, (got) => `invalid VLAN ID ${got} (must be between 0 and 4094)`);
        break;
      case "vlantrunk":
        out.vlanTrunk = list(value, inside(at, "vlanTrunk"), bridgeConfVlanTrunkItem);
        break;
      case "preservedefaultvlan":
        out.preserveDefaultVlan = boolean(value, inside(at, "preserveDefaultVlan"));
        break;
      case "macspoofchk":
        out.macspoofchk = boolean(value, inside(at, "macspoofchk"));
        break;
      case "enabledad":
        out.enabledad = boolean(value, inside(at, "enabledad"));
        break;
      case "disablecontainerinterface":
        out.disableContainerInterface = boolean(value, inside(at, "disableContainerInterface"));
        break;
      case "portisolation":
        out.portIsolation = boolean(value, inside(at, "portIsolation"));
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as BridgeConfShape;
}
