/**
 * tap: a link in the container whose other end is a program, such as a virtual machine's.
 *
 * Behaviour follows the reference plugin `plugins/main/tap` (CNI spec 1.1.0). Owns in the kernel: the link CNI_IFNAME
 * in the container.
 */
import { CniError, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { field } from "../../../cni/json.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { tap } from "../../../resources/link/tap/tap.ts";
import { freshIndex } from "../../../resources/link/shared/usable.ts";
import { judgeMac, requestedMac } from "../../shared/requested-mac.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { validateTapConf } from "./tap.validate.gen.ts";
import type { Result } from "../../../cni/result.ts";
import type { TapConf } from "./tap.schema.ts";
import { whyNoTaps } from "../../../ffi/tun.ts";

export default definePlugin<TapConf>({
  name: "tap",
  validate: validateTapConf,
  judge: (conf, call) => call && judgeMac(conf, call),
  mayWaitFor: (document) => field(document, "selinuxContext") ? ["SELinux"] : [],
  add,
  isBesideHost: true,
  status() {
    const reason = whyNoTaps();
    if (reason !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, "this host has no taps", reason);
  },
});

function add(at: Attachment<TapConf>): Result {
  const { conf, ifName } = at;
  const mac = requestedMac(at);
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const selinuxContext = conf.selinuxContext || undefined;
  at.apply(tap({
    ifName,
    // ip(8), which makes a tap with a context, cannot choose it.
    index: selinuxContext === undefined ? at.choose(freshIndex, () => undefined) : undefined,
    mac,
    mtu: conf.mtu > 0 ? conf.mtu : undefined,
    multiQueue: conf.multiQueue,
    owner: conf.owner,
    group: conf.group,
    bridge: conf.bridge || undefined,
    selinuxContext,
  }));
  const sysctls = ipam && { [`ipv4/conf/${ifName}/arp_notify`]: "1" };
  return configureContainerInterface(at, mac, ipam?.add(), sysctls);
}
