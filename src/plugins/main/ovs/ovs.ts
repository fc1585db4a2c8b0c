/**
 * ovs: a veth pair between the container and a bridge of Open vSwitch, with addresses from IPAM.
 *
 * The configuration is ovs-cni's, and `vxlanID` of an example of CNI specification 0.3.1. Owns: the link CNI_IFNAME in the
 * container, its other end on the host, and that end's port in Open vSwitch's database. The bridge is the operator's.
 */
import { CniError, INVALID_CONFIG, undefinedOnError } from "../../../cni/error.ts";
import { asOwner } from "../../../contract/owner.ts";
import { type Attachment, definePlugin, type JudgedCall } from "../../../contract/plugin.ts";
import { announcing } from "../../../resources/address/announcement.ts";
import { carrier } from "../../../resources/link/carrier.ts";
import { ovsPort } from "../../../resources/link/ovs-port/ovs-port.ts";
import { sweepPorts } from "../../../resources/link/ovs-port/owned-ports.ts";
import type { PortVlans } from "../../../resources/link/ovs-port/spec.ts";
import { bridgeNow, requireSwitch } from "../../../resources/link/ovs-port/switch.ts";
import { hostEndUp } from "../../../resources/link/host-end-up.ts";
import { configureContainerInterface } from "../../shared/container-interface.ts";
import { macOr } from "../../shared/requested-mac.ts";
import { chosenHostEnd, judgeVethMac, vethPair } from "../../shared/veth-pair.ts";
import type { OvsConf } from "./ovs.schema.ts";
import { validateOvsConf } from "./ovs.validate.gen.ts";
import {
  argumentsOf,
  bridgeOf,
  type CallArguments,
  patienceMs,
  readableArguments,
  serverOf,
  vlansInTunnel,
  vlansOf,
  withFile,
  withReadableFile,
} from "./settings.ts";
import type { Result } from "../../../cni/result.ts";
import type { Host } from "../../../contract/host.ts";
import type { Resource } from "../../../contract/resource.ts";
import { warn } from "../../../process/warn.ts";

export default definePlugin<OvsConf>({
  name: "ovs",
  validate: validateOvsConf,
  judge,
  add,
  isBesideHost: true,
  status(written) {
    const conf = withFile(written);
    requireSwitch(serverOf(conf), conf.bridge || undefined);
  },
  segment(written) {
    const { bridge, vlan, trunk, vxlanID } = withReadableFile(written);
    const parts = [bridge, trunk?.length ? undefined : vlan, vxlanID && `vxlan${vxlanID}`];
    return { link: parts.filter((part) => part !== undefined).join("."), isRouted: false };
  },
  sweeps: ["host-copy-dropped"],
  gc: (conf, isValid) => sweepPorts(readableServer(withReadableFile(conf)), conf.name, isValid),
});

function judge(written: OvsConf, call: JudgedCall | undefined): void {
  const conf = withFile(written);
  if (conf.deviceID) {
    throw new CniError(
      INVALID_CONFIG,
      `"deviceID": "${conf.deviceID}": hardware offload and vDPA are not supported`,
      "attach the container without a device, or use ovs-cni for it",
    );
  }
  if (!["", "system", undefined].includes(conf.interface_type)) {
    const why = `"interface_type": "${conf.interface_type}": the end of a veth pair is of type system`;
    throw new CniError(INVALID_CONFIG, why, "leave it out");
  }
  serverOf(conf);
  vlansOf(conf);
  requireText("bridge", conf.bridge);
  if (call === undefined) return;
  const args = argumentsOf(conf, call);
  bridgeOf(conf, args);
  requireText("ovnPort", args.ovnPort);
  judgeVethMac(requestedMac(conf, args));
}

/** A database takes no other (RFC 7047, section 3.1), and hangs up. */
function requireText(key: string, text = ""): void {
  if (!text.includes("\0") && text.isWellFormed()) return;
  throw new CniError(INVALID_CONFIG, `"${key}": ${JSON.stringify(text)} is no text for Open vSwitch`);
}

function add(at: Attachment<OvsConf>): Result {
  const { ifName } = at, conf = withReadableFile(at.conf), args = readableArguments(conf, at);
  const mac = macOr(requestedMac(at.conf, args), at);
  const place = {
    server: at.configured(() => serverOf(conf), readableServer(conf)),
    bridge: at.configured(() => bridgeOf(conf, args), conf.bridge ?? ""),
  };
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const { vlans, mtu } = membership(at, conf, place);
  const hostEnd = chosenHostEnd(at);
  const isUserspace = at.examine(() => bridgeNow(place.server, place.bridge).isUserspace);
  const port = ovsPort({
    ...asOwner(at),
    ...place,
    isUserspace: isUserspace || undefined,
    hostName: hostEnd.name,
    netnsPath: at.netnsPath,
    vlans,
    vxlanId: conf.vxlanID,
    ofportRequest: conf.ofport_request || undefined,
    interfaceType: conf.interface_type || undefined,
    ovnPort: args.ovnPort,
    podUid: args.podUid,
    patienceMs: patienceMs(conf),
  });
  at.applyAll([
    ...at.mayHave(isUserspace !== undefined) ? [notForHost(at, hostEnd.name, isUserspace)] : [],
    vethPair(at, hostEnd, mac, { mtu, isSwitchPort: true }),
    ...at.mayHave(isUserspace === true) ? [checksums(ifName)] : [],
    port,
    hostEndUp({ ifName: hostEnd.name }),
  ]);
  const result = configureContainerInterface(at, mac, ipam?.add(), announcing(ifName), hostEnd);
  at.apply(carrier({ ifName: hostEnd.name }));
  return result;
}

/**
 * On a userspace datapath ovs-vswitchd takes a copy of each packet. In the kernel's, a packet is the host's only while the
 * end is no port: when somebody takes it out of the bridge, or ends the datapath.
 */
function notForHost(at: Attachment<OvsConf>, link: string, isUserspace: boolean | undefined): Resource<unknown> {
  const { hostCopyDropped } = require(
    "../../../resources/packets/host-copy-dropped.ts",
  ) as typeof import("../../../resources/packets/host-copy-dropped.ts");
  return hostCopyDropped({ ...asOwner(at), link, isKernelDatapath: !isUserspace || undefined });
}

/** ovs-vswitchd forwards packets without a device that would fill in their checksums. */
function checksums(ifName: string): Resource<unknown> {
  const { txChecksums } = require(
    "../../../resources/link/tx-checksums.ts",
  ) as typeof import("../../../resources/link/tx-checksums.ts");
  return txChecksums({ ifName });
}

interface Membership {
  vlans: PortVlans;
  mtu?: number;
}

function membership(
  at: Attachment<OvsConf>,
  conf: OvsConf,
  place: { server: string; bridge: string },
): Membership {
  const { host } = at, { vxlanID } = conf;
  const vlans = at.configured(() => vlansOf(conf), { mode: "trunk" }), mtu = conf.mtu > 0 ? conf.mtu : undefined;
  if (vxlanID === undefined) return { vlans, mtu };
  return at.examine(() => inVirtualNetwork({ ...conf, vxlanID }, host, place)) ?? { vlans, mtu };
}

function inVirtualNetwork(
  conf: OvsConf & { vxlanID: number },
  { route }: Host,
  { server, bridge }: { server: string; bridge: string },
): Membership {
  const { mtuThrough, refuseOtherNetworks, requireTunnels, tunnelsNow } = require(
    "../../../resources/link/ovs-port/tunnels.ts",
  ) as typeof import("../../../resources/link/ovs-port/tunnels.ts");
  const tunnels = tunnelsNow(server, bridge), ofNetwork = requireTunnels(tunnels, bridge, conf.vxlanID);
  const vlans = vlansInTunnel(conf, ofNetwork[0].tag), most = mtuThrough(ofNetwork, route);
  refuseOtherNetworks(tunnels, conf.vxlanID, vlans);
  if (most !== undefined && conf.mtu > most) {
    warn(`ovs: "mtu": ${conf.mtu}: packets of more than ${most} bytes do not fit into the tunnel, and are lost`);
  }
  return { vlans, mtu: conf.mtu > 0 ? conf.mtu : most };
}

/** For DEL: what ADD would refuse counts for nothing. */
function readableServer(conf: OvsConf): string {
  return undefinedOnError(() => serverOf(conf)) ?? serverOf({ ...conf, socket_file: undefined });
}

function requestedMac({ runtimeConfig }: OvsConf, { mac }: CallArguments): string | undefined {
  return runtimeConfig?.mac || mac;
}
