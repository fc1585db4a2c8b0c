/** For macvlan, ipvlan and vlan: the master, and the link in the container that is made on it. */
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { containerLink, freshBirthName, type LinkType } from "../../resources/link/container-link.ts";
import {
  configuredMaster,
  findMaster,
  type Master,
  type MasterChoice,
} from "../../resources/link/shared/master-link.ts";
import { freshIndex } from "../../resources/link/shared/usable.ts";

type LinkConf = PluginConfig & MasterChoice & { mtu: number };

/**
 * The link's master. `requireFit` refuses one that does not fit. As far as the configuration tells where only ADD can look:
 * what earlier plugins of the chain would make is not there for `plan`.
 */
export function chosenMaster<Conf extends LinkConf>(
  at: Attachment<Conf>,
  requireFit: (master: Link) => void,
  nameOf = ({ conf }: Attachment<Conf>) => conf.master,
): Master | undefined {
  const { conf, purpose, prevResult, host } = at, { master, linkInContainer } = conf;
  const isOfChain = master === "" || prevResult?.interfaces?.some(({ name }) => name === master);
  if (purpose === "plan" && prevResult !== undefined && isOfChain) return configuredMaster(conf);
  const found = at.examine(() => {
    const link = findMaster({ master: nameOf(at), linkInContainer }, host);
    requireFit(link);
    return { name: link.name, inContainer: linkInContainer };
  });
  return found ?? configuredMaster(conf);
}

/** Without `mac`, the kernel picks one, or takes the master's. */
export function linkOn(
  master: Master | undefined,
  at: Attachment<LinkConf>,
  type: LinkType,
  mac?: string,
): { mac: string } {
  const { conf: { mtu }, ifName, host } = at;
  return at.apply(containerLink({
    ifName,
    type,
    mac,
    mtu: mtu > 0 ? mtu : undefined,
    master,
    birthName: at.choose(() => freshBirthName(ifName, host), () => ""),
    index: at.choose(freshIndex, () => undefined),
  }));
}
