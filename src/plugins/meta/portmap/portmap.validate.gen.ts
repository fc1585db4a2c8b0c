// Generated from portmap.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, list, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { PortmapConf } from "./portmap.schema.ts";

const portmapConfRuntimeConfigPortMappingsItem = objectOf({
  hostPort: integer,
  containerPort: integer,
  protocol: string,
  hostIP: string,
}, { hostPort: 0, containerPort: 0, protocol: "tcp", hostIP: "" });

const portmapConfRuntimeConfig = objectOf({
  portMappings: (value, at) => list(value, at, portmapConfRuntimeConfigPortMappingsItem),
}, {});

const portmapConf = objectOf({
  ...commonKeys,
  runtimeConfig: portmapConfRuntimeConfig,
  backend: string,
  snat: boolean,
  masqAll: boolean,
  markMasqBit: integer,
  externalSetMarkChain: string,
  conditionsV4: (value, at) => list(value, at, string),
  conditionsV6: (value, at) => list(value, at, string),
}, { cniVersion: "0.1.0", type: "", backend: "", masqAll: false }, "name");

export function validatePortmapConf(document: unknown): PortmapConf {
  return decoding("failed to load netconf", () => portmapConf(document ?? {}, ""));
}
