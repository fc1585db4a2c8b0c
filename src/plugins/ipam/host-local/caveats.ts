/** Routes that the plugin before cannot add: what `plan` says before each container, `status` says without one. */
import { field, isObject } from "../../../cni/json.ts";
import type { Caveat, Placed } from "../../../contract/plugin.ts";
import { refusedRouteCaveats } from "../../shared/route-caveats.ts";
import { subnetsOf } from "../../shared/way-out.ts";
import type { HostLocalConf } from "./host-local.schema.ts";

export function hostLocalCaveats({ ipam }: HostLocalConf, { own, document }: Placed): Caveat[] {
  const subnets = subnetsOf(document);
  // A plugin of another make may add routes in another way.
  if (own === undefined || subnets.length === 0 || mayHaveMore(document)) return [];
  return refusedRouteCaveats(ipam?.routes ?? [], subnets);
}

/** Addresses that only ADD knows. */
function mayHaveMore(document: Placed["document"]): boolean {
  const capabilities = field(document, "capabilities");
  return (isObject(capabilities) && field(capabilities, "ipRanges") === true) ||
    field(document, "useInterfaceNetwork") === true;
}
