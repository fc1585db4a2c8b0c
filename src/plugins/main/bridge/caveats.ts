/** Options of `bridge` that do nothing without others. */
import type { Caveat, Placed } from "../../../contract/plugin.ts";
import { masqueradeCaveats } from "../../shared/way-out.ts";
import type { BridgeConf } from "./bridge.schema.ts";

export function bridgeCaveats(conf: BridgeConf, placed: Placed): Caveat[] {
  if (!conf.ipam?.type) {
    return (["isGateway", "isDefaultGateway", "ipMasq"] as const).filter((key) => conf[key])
      .map((key) => ({ key, text: 'has no effect without "ipam": the container has no address' }));
  }
  return conf.ipMasq ? masqueradeCaveats(placed) : [];
}
