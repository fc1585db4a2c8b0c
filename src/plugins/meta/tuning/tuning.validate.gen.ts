// Generated from tuning.schema.ts by compile/validators.ts; change those.
import { boolean, decoding, integer, map, objectOf, string } from "../../../cni/decode.ts";
import { commonKeys } from "../../../cni/config.validate.gen.ts";
import type { TuningConf } from "./tuning.schema.ts";

const tuningConfArgsCni = objectOf({
  sysctl: (value, at) => map(value, at, string),
  mac: string,
  promisc: boolean,
  mtu: integer,
  allmulti: boolean,
  txQLen: integer,
}, {});

const tuningConfArgs = objectOf({
  cni: tuningConfArgsCni,
}, {});

const tuningConfRuntimeConfig = objectOf({
  mac: string,
}, {});

const tuningConf = objectOf({
  ...commonKeys,
  args: tuningConfArgs,
  runtimeConfig: tuningConfRuntimeConfig,
  sysctl: (value, at) => map(value, at, string),
  mac: string,
  promisc: boolean,
  mtu: integer,
  allmulti: boolean,
  txQLen: integer,
  dataDir: string,
}, { cniVersion: "0.1.0", type: "", dataDir: "" }, "name");

export function validateTuningConf(document: unknown): TuningConf {
  return decoding("failed to load netconf", () => tuningConf(document ?? {}, ""));
}
