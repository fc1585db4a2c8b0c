/** Options of `bridge` that do nothing without others. */
import type { Caveat, Placed } from "../../../contract/plugin.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { contains, formatPrefix, networkOf } from "../../../net/address.ts";
import { masqueradeCaveats, subnetsOf } from "../../shared/way-out.ts";
import type { BridgeConf } from "./bridge.schema.ts";

const ANY_LINK = 0;

export function bridgeCaveats(conf: BridgeConf, placed: Placed): Caveat[] {
  if (!conf.ipam?.type) {
    return (["isGateway", "isDefaultGateway", "ipMasq"] as const).filter((key) => conf[key])
      .map((key) => ({ key, text: 'has no effect without "ipam": the container has no address' }));
  }
  if (!conf.ipMasq) return [];
  const unneeded = masqueradeCaveats(placed);
  return unneeded.length > 0 || conf.isGateway || conf.isDefaultGateway ? unneeded : gatewayCaveats(placed);
}

/** Somebody else may give the host the gateway's address. */
function gatewayCaveats({ document, host }: Placed): Caveat[] {
  const present = host === undefined ? [] : listAddresses(host.route, ANY_LINK);
  const bare = subnetsOf(document).filter((subnet) => !present.some(({ bytes }) => contains(subnet, bytes)));
  if (bare.length === 0) return [];
  const subnets = bare.map((subnet) => formatPrefix({ ...subnet, bytes: networkOf(subnet) })).join(" or ");
  return [{
    key: "ipMasq",
    text: `has nothing to do while the host has no address in ${subnets}; "isGateway" gives it the gateway's`,
  }];
}
