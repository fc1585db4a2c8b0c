/**
 * ipvlan: a link in the container that shares the MAC address of a host link. It can follow the plugin that made that
 * link in a chain, and then uses that plugin's addresses.
 *
 * Behaviour follows the reference plugin `plugins/main/ipvlan` (CNI spec 1.1.0). Owns in the kernel: the link
 * CNI_IFNAME in the container.
 */
import { CniError, INVALID_CONFIG, UNSUPPORTED_FIELD } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { ipvlanModes } from "../../../ffi/netlink/route/link-kinds.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { requireHostFor } from "../../../resources/link/shared/master-link.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { chosenMaster, linkOn } from "../../shared/link-on-master.ts";
import { validateIpvlanConf } from "./ipvlan.validate.gen.ts";
import type { IpvlanConf } from "./ipvlan.schema.ts";
import type { Result } from "../../../cni/result.ts";

export default definePlugin<IpvlanConf>({
  name: "ipvlan",
  validate: validateIpvlanConf,
  judge(conf, call) {
    if (!Object.hasOwn(ipvlanModes, modeOf(conf))) {
      throw new CniError(
        UNSUPPORTED_FIELD,
        `unknown ipvlan mode: "${conf.mode}"`,
        `"mode" is none of the known ones`,
      );
    }
    if (call !== undefined && !conf.ipam?.type) requireAddresses(call.prevResult);
  },
  add,
  isBesideHost: true,
  segment: ({ master: link }) => ({ link, isRouted: false }),
  // In a chain the master is not known before ADD.
  status: (conf, host) => requireHostFor("ipvlan", conf.master === "" ? undefined : conf, host),
});

function add(at: Attachment<IpvlanConf>): Result {
  const master = chosenMaster(at, () => {}, masterName);
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const link = linkOn(master, at, { kind: "ipvlan", settings: { mode: modeOf(at.conf) } });
  return configureContainerInterface(
    at,
    link.mac,
    ipam === undefined ? at.prevResult : ipam.add(),
    announcing(at.ifName),
  );
}

function modeOf({ mode }: IpvlanConf): string {
  return mode || "l2";
}

/** Without a configured master, the single link of the previous plugin in the chain. */
function masterName({ conf, prevResult }: Attachment<IpvlanConf>): string {
  if (conf.master !== "" || prevResult === undefined) return conf.master;
  const interfaces = prevResult.interfaces ?? [];
  if (interfaces.length === 1 && interfaces[0]!.name) return interfaces[0]!.name;
  throw new CniError(
    INVALID_CONFIG,
    "chained master failure. PrevResult lacks a single named interface",
    `it has ${interfaces.length}: name one by "master"`,
  );
}

function requireAddresses(prevResult: Result | undefined): void {
  if (prevResult?.ips?.length) return;
  const details = `"ipam.type" is missing, and no plugin before this one brought addresses`;
  throw new CniError(INVALID_CONFIG, "no plugin name provided", details);
}
