/** The container's side of the bridge: what is refused, and its sysctls. */
import type { Host } from "../../../contract/host.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";

/** Throws with the text that scripts around podman look for. */
export function requireFreeName(ifName: string, hostName: string | undefined, bridge: string, host: Host): void {
  const reason = "Netlink error: File exists (os error 17)";
  const inside = linkIndex(host.container!.route, ifName) !== undefined;
  if (hostName !== undefined && (hostName === bridge || linkIndex(host.route, hostName) !== undefined)) {
    throw new Error(
      `create veth pair: interface ${ifName} already exists on container namespace or ` +
        `${hostName} exists on host namespace: ${reason}`,
    );
  }
  if (inside) {
    throw new Error(`create veth pair: interface ${ifName} already exists on container namespace: ${reason}`);
  }
}

/** No addresses from router advertisements; addresses are announced; replies may arrive by another link. */
export function containerSysctls(ifName: string, { hasV6 }: { hasV6: boolean }): Record<string, string> {
  const v6: Record<string, string> = { [`ipv6/conf/${ifName}/autoconf`]: "0" };
  if (hasV6) v6[`ipv6/conf/${ifName}/accept_dad`] = "0";
  return { ...v6, [`ipv4/conf/${ifName}/arp_notify`]: "1", [`ipv4/conf/${ifName}/rp_filter`]: "2" };
}
