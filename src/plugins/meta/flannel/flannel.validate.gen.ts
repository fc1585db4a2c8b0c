// Generated from flannel.schema.ts by compile/validators.ts; change those.
import { anything, decoding, foldKey, inside, map, missing, object, string } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { FlannelConf } from "./flannel.schema.ts";

export function validateFlannelConf(document: unknown): FlannelConf {
  return decoding("failed to load netconf", () => flannelConf(document ?? {}, ""));
}

type FlannelConfShape = Omit<CommonKeysShape, "ipam"> & {
  "ipam"?: Record<string, unknown>;
  "subnetFile": string;
  "dataDir": string;
  "delegate"?: Record<string, unknown>;
};

function flannelConf(document: unknown, at: string): FlannelConfShape {
  const source = object(document, at);
  const out: Partial<FlannelConfShape> = { "cniVersion": "0.1.0", "type": "", "subnetFile": "/run/flannel/subnet.env", "dataDir": "/var/lib/cni/flannel" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      case "ipam":
        out.ipam = map(value, inside(at, "ipam"), anything);
        break;
      case "subnetfile":
        out.subnetFile = string(value, inside(at, "subnetFile"));
        break;
      case "datadir":
        out.dataDir = string(value, inside(at, "dataDir"));
        break;
      case "delegate":
        out.delegate = map(value, inside(at, "delegate"), anything);
        break;
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as FlannelConfShape;
}
