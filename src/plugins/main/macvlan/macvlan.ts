/**
 * macvlan: a link in the container with its own MAC address on the network of a host link.
 *
 * Behaviour follows the reference plugin `plugins/main/macvlan` (CNI spec 1.1.0). Owns in the kernel: the link
 * CNI_IFNAME in the container.
 */
import { CniError, UNSUPPORTED_FIELD } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { macvlanModes } from "../../../ffi/netlink/route/link-kinds.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { requireHostFor, requireMtuOf } from "../../../resources/link/shared/master-link.ts";
import { judgeMac, requestedMac } from "../../shared/requested-mac.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { chosenMaster, linkOn } from "../../shared/link-on-master.ts";
import { validateMacvlanConf } from "./macvlan.validate.gen.ts";
import type { MacvlanConf } from "./macvlan.schema.ts";
import type { Result } from "../../../cni/result.ts";

export default definePlugin<MacvlanConf>({
  name: "macvlan",
  validate: validateMacvlanConf,
  judge(conf, call) {
    if (call !== undefined) judgeMac(conf, call);
    if (!Object.hasOwn(macvlanModes, modeOf(conf))) {
      throw new CniError(
        UNSUPPORTED_FIELD,
        `unknown macvlan mode: "${conf.mode}"`,
        `"mode" is none of the known ones`,
      );
    }
  },
  add,
  isBesideHost: true,
  segment: ({ master: link }) => ({ link, isRouted: false }),
  status: (conf, host) => requireHostFor("macvlan", conf, host),
});

function add(at: Attachment<MacvlanConf>): Result {
  const { conf, ifName } = at;
  const mode = modeOf(conf);
  const mac = requestedMac(at);
  const master = chosenMaster(at, (found) => requireMtuOf(found, conf.mtu));
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const settings = { mode, bcqueuelen: conf.bcqueuelen || undefined };
  // In passthru mode the link has its master's MAC.
  const link = linkOn(master, at, { kind: "macvlan", settings }, mode === "passthru" ? undefined : mac);
  return configureContainerInterface(at, link.mac, ipam?.add(), ipam && announcing(ifName));
}

function modeOf({ mode }: MacvlanConf): string {
  return mode || "bridge";
}
