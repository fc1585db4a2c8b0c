/** The veth pair of a plugin: what its ends are called, which MAC addresses they have, and the error for one that is none. */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import type { Interface, Result } from "../../cni/result.ts";
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { Resource } from "../../contract/resource.ts";
import { randomMac } from "../../ffi/random.ts";
import { canonicalMac } from "../../net/mac.ts";
import { freshHostName } from "../../resources/link/shared/usable.ts";
import { veth, type VethSpec } from "../../resources/link/veth.ts";

interface HostEnd {
  name: string;
  mac: string;
}

/** `sideIn` finds it in a result of ours or of the reference plugin. */
export function chosenHostEnd(
  { host, choose }: Attachment<PluginConfig>,
  sideIn: (result: Result) => Interface | undefined = ({ interfaces }) => interfaces?.find(({ sandbox }) => !sandbox),
): HostEnd {
  return {
    name: choose(() => freshHostName(host), (result) => sideIn(result)?.name ?? ""),
    mac: choose(randomMac, (result) => sideIn(result)?.mac ?? ""),
  };
}

/** Throws when the MAC address that the container's end shall have is malformed. */
export function judgeVethMac(wanted: string | undefined): void {
  if (!wanted || canonicalMac(wanted) !== undefined) return;
  throw new CniError(INVALID_CONFIG, `failed to make veth pair: address ${wanted}: invalid MAC address`);
}

/** `mtu`: 0 is the kernel's. */
export function vethPair(
  { ifName }: Attachment<PluginConfig>,
  hostEnd: HostEnd,
  containerMac: string,
  { mtu = 0, ...more }: Omit<VethSpec, "hostName" | "hostMac" | "containerName" | "containerMac">,
): Resource<unknown> {
  const ends = { hostName: hostEnd.name, hostMac: hostEnd.mac, containerName: ifName, containerMac };
  return veth({ ...ends, mtu: mtu > 0 ? mtu : undefined, ...more });
}
