/**
 * dummy: a link in the container that leads nowhere, for addresses that are local to the container.
 *
 * Behaviour follows the reference plugin `plugins/main/dummy` (CNI spec 1.1.0). Owns in the kernel: the link CNI_IFNAME
 * in the container.
 */
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { containerLink } from "../../../resources/link/container-link.ts";
import { requireHostFor } from "../../../resources/link/shared/master-link.ts";
import { freshIndex } from "../../../resources/link/shared/usable.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { chosenMac } from "../../shared/requested-mac.ts";
import { requireIpam } from "../../shared/ipam.ts";
import { validateDummyConf } from "./dummy.validate.gen.ts";
import type { DummyConf } from "./dummy.schema.ts";
import type { Result } from "../../../cni/result.ts";

export default definePlugin<DummyConf>({
  name: "dummy",
  validate: validateDummyConf,
  judge: (conf) => requireIpam(conf, "dummy interface requires an IPAM configuration"),
  add,
  isBesideHost: true,
  status: (_conf, host) => requireHostFor("dummy", undefined, host),
});

function add(at: Attachment<DummyConf>): Result {
  const { ifName } = at;
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const mac = chosenMac(at);
  const index = at.choose(freshIndex, () => undefined);
  at.apply(containerLink({ ifName, type: { kind: "dummy", settings: {} }, mac, index }));
  const lease = ipam?.add();
  return { ...configureContainerInterface(at, mac, lease), dns: lease?.dns };
}
