/**
 * macvlan: a link in the container with a MAC address of its own on the wire of a link of the host.
 *
 * Behaviour follows the reference plugin `plugins/main/macvlan` (CNI spec 1.1.0). Owns in the kernel: the link CNI_IFNAME
 * in the container.
 */
import { CniError, UNSUPPORTED_FIELD } from "../../../cni/error.ts";
import { definePlugin } from "../../../contract/plugin.ts";
import { macvlanModes } from "../../../ffi/netlink/route/kinds/macvlan.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { containerLink, freshBirthName } from "../../../resources/link/container-link.ts";
import { findMaster, knownMaster, requireHostFor, requireMtuOf } from "../../../resources/link/master-link.ts";
import { requestedMac } from "../../shared/requested-mac.ts";
import { soleInterface } from "../../shared/container-interface.ts";
import { validateMacvlanConf } from "./macvlan.validate.gen.ts";
import type { Attachment } from "../../../contract/plugin.ts";
import type { MacvlanConf } from "./macvlan.schema.ts";
import type { Result } from "../../../cni/result.ts";

export default definePlugin<MacvlanConf>({
  name: "macvlan",
  validate: validateMacvlanConf,
  add,
  status: (conf, host) => requireHostFor("macvlan", conf, host),
});

function add(at: Attachment<MacvlanConf>): Result {
  const { conf, ifName } = at;
  const mode = conf.mode || "bridge";
  const mac = requestedMac(at);
  const master = at.restating ? knownMaster(conf) : chooseMaster(at, mode);
  const ipam = at.ipam(); // announced first: given back last, when nothing uses the addresses any more
  const link = at.apply(containerLink({
    ifName,
    type: { kind: "macvlan", settings: { mode, bcqueuelen: conf.bcqueuelen || undefined } },
    // In this mode it has its master's, and nobody is asked.
    mac: mode === "passthru" ? undefined : mac,
    mtu: conf.mtu > 0 ? conf.mtu : undefined,
    master,
    birthName: at.choose(() => freshBirthName(ifName, at.host), () => ""),
  }));
  return soleInterface(at, link.mac, ipam?.add(), ipam && announcing(ifName));
}

function chooseMaster({ conf, host }: Attachment<MacvlanConf>, mode: string) {
  if (!Object.hasOwn(macvlanModes, mode)) {
    throw new CniError(UNSUPPORTED_FIELD, `unknown macvlan mode: "${mode}"`, `"mode" is none of the known ones`);
  }
  const master = findMaster(conf, host);
  requireMtuOf(master, conf.mtu);
  return { name: master.name, inContainer: conf.linkInContainer };
}
