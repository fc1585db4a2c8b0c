// Generated from bridge.schema.ts by compile/validators.ts; change those.
import { boolean, choice, decoding, integerBetween, list, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { BridgeConf } from "./bridge.schema.ts";

const bridgeConfArgsCni = objectOf({
  mac: string,
}, {});

const bridgeConfArgs = objectOf({
  cni: bridgeConfArgsCni,
}, {});

const bridgeConfRuntimeConfig = objectOf({
  mac: string,
}, {});

const bridgeConfVlanTrunkItem = objectOf({
  minID: (value, at) => integerBetween(value, at, 1, 4094, () => `incorrect trunk minID parameter`),
  maxID: (value, at) => integerBetween(value, at, 1, 4094, () => `incorrect trunk maxID parameter`),
  id: (value, at) => integerBetween(value, at, 1, 4094, () => `incorrect trunk id parameter`),
}, {});

const bridgeConf = objectOf({
  ...commonKeys,
  args: bridgeConfArgs,
  runtimeConfig: bridgeConfRuntimeConfig,
  bridge: string,
  isGateway: boolean,
  isDefaultGateway: boolean,
  forceAddress: boolean,
  ipMasq: boolean,
  ipMasqBackend: (value, at) => choice(value, at, ["iptables","nftables",""] as const, (got) => `unknown ipmasq backend "${got}"`),
  mtu: (value, at) => integerBetween(value, at, -9007199254740991, 4294967295, (got) => `${got} is not an MTU`),
  hairpinMode: boolean,
  promiscMode: boolean,
  vlan: (value, at) => integerBetween(value, at, 0, 4094, (got) => `invalid VLAN ID ${got} (must be between 0 and 4094)`),
  vlanTrunk: (value, at) => list(value, at, bridgeConfVlanTrunkItem),
  preserveDefaultVlan: boolean,
  macspoofchk: boolean,
  enabledad: boolean,
  disableContainerInterface: boolean,
  portIsolation: boolean,
}, { cniVersion: "0.1.0", type: "", bridge: "cni0", isGateway: false, isDefaultGateway: false, forceAddress: false, ipMasq: false, mtu: 0, hairpinMode: false, promiscMode: false, vlan: 0, preserveDefaultVlan: false, macspoofchk: false, enabledad: false, disableContainerInterface: false, portIsolation: false }, "name");

export function validateBridgeConf(document: unknown): BridgeConf {
  return decoding("failed to load netconf", () => bridgeConf(document ?? {}, ""));
}
