/** For kernels without bridges that filter VLANs: the cause, which their words do not name. */
import { CniError, INTERNAL, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { EOPNOTSUPP } from "../../../ffi/errno.ts";
import { knowsVlanFiltering } from "../../../ffi/netlink/route/bridge.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";

export const NO_VLAN_FILTERING = "this kernel has no bridges that filter VLANs (CONFIG_BRIDGE_VLAN_FILTERING)";

export function requireVlanFiltering(host: Host): void {
  if (!knowsVlanFiltering(host.route)) throw new CniError(PLUGIN_NOT_AVAILABLE, NO_VLAN_FILTERING);
}

/** Only a kernel without VLANs of bridges refuses them so. */
export function sayingWhatIsLacking(work: () => void): void {
  try {
    work();
  } catch (cause) {
    if (!isNetlinkError(cause, EOPNOTSUPP)) throw cause;
    throw new CniError(INTERNAL, cause.message, NO_VLAN_FILTERING, { cause });
  }
}
