/**
 * ptp: a veth pair between the container and the host. The host's end has the gateway's address, and the container
 * sends everything through it.
 *
 * Behaviour follows the reference plugin `plugins/main/ptp` (CNI spec 1.1.0). Owns in the kernel: the link CNI_IFNAME
 * in the container, its other end on the host with its address and route, the masquerade entries of the attachment.
 * Forwarding is shared and stays enabled.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { carrier } from "../../../resources/link/carrier.ts";
import { forwarding } from "../../../resources/kernel/forwarding.ts";
import { gatewaySide } from "../../../resources/address/gateway-side.ts";
import { hostEndUp } from "../../../resources/link/host-end-up.ts";
import { applyIpMasq } from "../../shared/ip-masq.ts";
import { dnsOr, requireIpam } from "../../shared/ipam.ts";
import { chosenMac } from "../../shared/requested-mac.ts";
import { chosenHostEnd, vethPair } from "../../shared/veth-pair.ts";
import { validatePtpConf } from "./ptp.validate.gen.ts";
import type { Interface, IpConfig, Result } from "../../../cni/result.ts";
import type { PtpConf } from "./ptp.schema.ts";
import type { Resource } from "../../../contract/resource.ts";

export default definePlugin<PtpConf>({
  name: "ptp",
  validate: validatePtpConf,
  judge: (conf) => requireIpam(conf),
  mayWaitFor: () => ["legacy iptables"],
  add,
  caveats({ ipMasq }, placed) {
    const { masqueradeCaveats } = require("../../shared/way-out.ts") as typeof import("../../shared/way-out.ts");
    return ipMasq ? masqueradeCaveats(placed) : [];
  },
  status(_conf, _host, document) {
    const { requireV6Gateways } = require("../../shared/way-out.ts") as typeof import("../../shared/way-out.ts");
    // Each container's link is new, and begins as this says.
    requireV6Gateways(document, "default");
  },
  segment: () => ({ isRouted: true }),
  sweeps: ["masquerade"],
});

function add(at: Attachment<PtpConf>): Result {
  const { conf, ifName } = at;
  const ipam = at.ipam(); // announced first, so released last, when nothing uses the addresses any more
  const hostEnd = chosenHostEnd(at), mac = chosenMac(at);
  at.applyAll([
    vethPair(at, hostEnd, mac, { mtu: conf.mtu, refusesRedirects: true }),
    hostEndUp({ ifName: hostEnd.name }),
  ]);

  const lease = ipam?.add();
  const ips: IpConfig[] = [];
  for (const { address, gateway } of lease?.ips ?? []) ips.push({ address, interface: 1, gateway });
  connect(at, hostEnd.name, ips, lease);
  if (at.mayHave(conf.ipMasq)) applyIpMasq(at, ips);

  const interfaces: Interface[] = [hostEnd, { name: ifName, mac, sandbox: at.netnsPath }];
  return { cniVersion: conf.cniVersion, interfaces, ips, routes: lease?.routes, dns: dnsOr(conf, lease) };
}

/** Sets addresses and routes at both ends. */
function connect(at: Attachment<PtpConf>, hostName: string, ips: IpConfig[], lease: Result | undefined): void {
  const { ifName } = at;
  const addresses: { address: string; gateway: string }[] = [];
  at.examine(() => requireGateways(ips));
  for (const { address, gateway } of ips) if (gateway !== undefined) addresses.push({ address, gateway });
  const wanted: Resource[] = [];
  for (const family of [4, 6] as const) {
    if (ips.some(({ address }) => address.includes(":") === (family === 6))) {
      wanted.push(forwarding({ family, ifName: hostName }));
    }
  }
  wanted.push(
    addressing({
      ifName,
      addresses,
      routes: lease?.routes ?? [],
      sysctls: {},
      detectDuplicates: false,
      pointToPoint: true,
    }),
    gatewaySide({ ifName: hostName, addresses }),
    // The kernel drops the host's packets until it has noticed that the other end is up.
    carrier({ ifName: hostName }),
  );
  at.applyAll(wanted);
}

function requireGateways(ips: IpConfig[]): void {
  const without = ips.find(({ gateway }) => gateway === undefined);
  if (without === undefined) return;
  throw new CniError(INTERNAL, `IPAM gave no gateway for ${without.address}`, "ptp cannot do without");
}
