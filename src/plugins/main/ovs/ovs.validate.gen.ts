// Generated from ovs.schema.ts by compile/validators.ts; change those.
import { anything, decoding, integer, integerBetween, list, map, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { OvsConf } from "./ovs.schema.ts";

const ovsConfArgs = objectOf({
  cni: (value, at) => map(value, at, anything),
}, {});

const ovsConfRuntimeConfig = objectOf({
  mac: string,
}, {});

const ovsConfTrunkItem = objectOf({
  minID: (value, at) => integerBetween(value, at, 0, 4095, () => `incorrect trunk minID parameter`),
  maxID: (value, at) => integerBetween(value, at, 0, 4095, () => `incorrect trunk maxID parameter`),
  id: (value, at) => integerBetween(value, at, 0, 4095, () => `incorrect trunk id parameter`),
}, {});

const ovsConf = objectOf({
  ...commonKeys,
  args: ovsConfArgs,
  runtimeConfig: ovsConfRuntimeConfig,
  bridge: string,
  vlan: (value, at) => integerBetween(value, at, 0, 4095, (got) => `invalid "vlan": ${got} (must be between 0 and 4095)`),
  trunk: (value, at) => list(value, at, ovsConfTrunkItem),
  vxlanID: (value, at) => integerBetween(value, at, 1, 16777215, (got) => `invalid "vxlanID": ${got} (must be between 1 and 16777215)`),
  mtu: (value, at) => integerBetween(value, at, -9007199254740991, 4294967295, (got) => `${got} is not an MTU`),
  ofport_request: (value, at) => integerBetween(value, at, 0, 65279, (got) => `invalid "ofport_request": ${got} (must be between 0 and 65279)`),
  interface_type: string,
  socket_file: string,
  configuration_path: string,
  link_state_check_retries: integer,
  link_state_check_interval: integer,
  deviceID: string,
}, { cniVersion: "0.1.0", type: "", mtu: 0 }, "name");

export function validateOvsConf(document: unknown): OvsConf {
  return decoding("failed to load netconf", () => ovsConf(document ?? {}, ""));
}
