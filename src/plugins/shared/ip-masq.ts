/** `ipMasq` of bridge and ptp: packets that leave the container's subnet get the host's address. */
import { asOwner } from "../../contract/owner.ts";
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { NatBackend } from "../../resources/packets/shared/nat-backend.ts";

type IpMasqConf = PluginConfig & { ipMasqBackend?: NatBackend | "" };

export function applyIpMasq(at: Attachment<IpMasqConf>, ips: readonly { address: string }[]): void {
  const { masquerade } = require(
    "../../resources/packets/masquerade/masquerade.ts",
  ) as typeof import("../../resources/packets/masquerade/masquerade.ts");
  const { chooseNatBackend } = require(
    "../../resources/packets/shared/nat-backend.ts",
  ) as typeof import("../../resources/packets/shared/nat-backend.ts");
  at.apply(masquerade({
    backend: chooseNatBackend(at.conf.ipMasqBackend).backend,
    ...asOwner(at),
    addresses: ips.map(({ address }) => address),
  }));
}
