/**
 * vlan: a link in the container for the frames of a host link that carry one 802.1Q tag.
 *
 * Behaviour follows the reference plugin `plugins/main/vlan` (CNI spec 1.1.0). Owns in the kernel: the link CNI_IFNAME
 * in the container.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { requireHostFor, requireMtuOf } from "../../../resources/link/shared/master-link.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { chosenMaster, linkOn } from "../../shared/link-on-master.ts";
import { validateVlanConf } from "./vlan.validate.gen.ts";
import type { Link } from "../../../ffi/netlink/route/link.ts";
import type { Result } from "../../../cni/result.ts";
import type { VlanConf } from "./vlan.schema.ts";

export default definePlugin<VlanConf>({
  name: "vlan",
  validate: validateVlanConf,
  judge: checkConf,
  add,
  isBesideHost: true,
  segment: ({ master, vlanId }) => ({ link: `${master}.${vlanId}`, isRouted: false }),
  status: (conf, host) => requireHostFor("vlan", conf, host, requireUp),
});

function add(at: Attachment<VlanConf>): Result {
  const { conf } = at;
  const master = chosenMaster(at, (found) => {
    requireUp(found);
    requireMtuOf(found, conf.mtu);
  });
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const link = linkOn(master, at, { kind: "vlan", settings: { id: conf.vlanId } });
  return configureContainerInterface(at, link.mac, ipam?.add());
}

function checkConf(conf: VlanConf): void {
  if (conf.master === "") {
    const text = `"master" field is required. It specifies the host interface name to create the VLAN for`;
    throw new CniError(INVALID_CONFIG, text);
  }
  if (conf.vlanId < 0 || conf.vlanId > 4094) {
    throw new CniError(
      INVALID_CONFIG,
      `invalid VLAN ID ${conf.vlanId} (must be between 0 and 4095 inclusive)`,
      `"vlanId" is ${conf.vlanId}; the highest is 4094, as 4095 is reserved`,
    );
  }
}

/** Unlike other kinds, a vlan cannot be brought up on a master that is down. */
function requireUp({ name, up }: Link): void {
  if (!up) throw new CniError(INVALID_CONFIG, `master "${name}" is down`, `ip link set ${name} up`);
}
