// Generated from dummy.schema.ts by compile/validators.ts; change those.
import { decoding, foldKey, inside, missing, object } from "../../../cni/decode.ts";
import { type CommonKeysShape, commonKeys } from "../../../cni/config.validate.gen.ts";
import type { DummyConf } from "./dummy.schema.ts";

export function validateDummyConf(document: unknown): DummyConf {
  return decoding("failed to load netconf", () => dummyConf(document ?? {}, ""));
}

type DummyConfShape = CommonKeysShape & unknown;

function dummyConf(document: unknown, at: string): DummyConfShape {
  const source = object(document, at);
  const out: Partial<DummyConfShape> = { "cniVersion": "0.1.0", "type": "" };
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
  return out as DummyConfShape;
}
