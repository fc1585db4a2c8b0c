// Generated from loopback.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, missing, object } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { LoopbackConf } from "./loopback.schema.ts";

export function validateLoopbackConf(document: unknown): LoopbackConf {
  return decoding("failed to load netconf", () => loopbackConf(document ?? {}, ""));
}

type LoopbackConfShape = CommonKeysShape & unknown;

function loopbackConf(document: unknown, at: string): LoopbackConfShape {
  const source = object(document, at);
  const out: Partial<LoopbackConfShape> = { "cniVersion": "0.1.0", "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    const folded = foldKey(key);
    switch (folded) {
      default:
        commonKeys(out, folded, value, at);
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  return out as LoopbackConfShape;
}
