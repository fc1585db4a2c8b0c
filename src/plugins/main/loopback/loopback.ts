/**
 * loopback: brings up `lo` in the container.
 *
 * Behaviour follows the reference plugin `plugins/main/loopback` (CNI spec 1.1.0). CNI_IFNAME is ignored: the link is
 * always lo.
 */
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { loopbackUp } from "../../../resources/link/loopback-up.ts";
import { validateLoopbackConf } from "./loopback.validate.gen.ts";
import type { LoopbackConf } from "./loopback.schema.ts";
import type { Result } from "../../../cni/result.ts";

export default definePlugin<LoopbackConf>({
  name: "loopback",
  validate: validateLoopbackConf,
  add,
  isBesideHost: true,
  checksWithoutPrevResult: true,
});

function add(at: Attachment<LoopbackConf>): Result {
  const { addresses } = at.apply(loopbackUp({}));
  if (at.prevResult !== undefined) return at.prevResult;
  const first = (v6: boolean) => addresses.find((address) => address.includes(":") === v6);
  return {
    cniVersion: at.conf.cniVersion,
    interfaces: [{ name: "lo", mac: "00:00:00:00:00:00", sandbox: at.netnsPath }],
    ips: [first(false), first(true)].flatMap((address) => address ? [{ interface: 0, address }] : []),
  };
}
