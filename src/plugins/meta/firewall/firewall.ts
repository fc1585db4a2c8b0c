/**
 * firewall: allows forwarding for a container's addresses, and isolates bridges if configured.
 *
 * Behaviour follows the reference plugin `plugins/meta/firewall`, with a third backend of our own. Owns in the kernel,
 * or in firewalld, the entries for the addresses. Chains and rules for bridges are shared and stay.
 */
import { CniError, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { formatAddress, parsePrefix } from "../../../net/address.ts";
import { firewall, obstacleTo } from "../../../resources/packets/firewall/firewall.ts";
import { chooseFirewallBackend } from "../../../resources/packets/firewall/choose-backend.ts";
import type { Ingress } from "../../../resources/packets/firewall/spec.ts";
import { validateFirewallConf } from "./firewall.validate.gen.ts";
import { checkBridgeName, checkChainName, checkIngressPolicy, checkZone } from "./names.ts";
import type { IpConfig, Result } from "../../../cni/result.ts";
import type { FirewallConf } from "./firewall.schema.ts";
import { datapathOf } from "../../shared/datapath.ts";
import { addressesOn } from "../../shared/addresses-on.ts";

const ADMIN_CHAIN = "CNI-ADMIN";
const ZONE = "trusted";

export default definePlugin<FirewallConf>({
  name: "firewall",
  versions: ["0.4.0", "1.0.0", "1.1.0"],
  validate: validateFirewallConf,
  judge(conf, call) {
    checkIngressPolicy(conf.ingressPolicy);
    checkChainName("iptablesAdminChainName", conf.iptablesAdminChainName);
    checkZone("firewalldZone", conf.firewalldZone);
    const policy = call && isolationOf(conf);
    if (policy !== undefined && call!.prevResult !== undefined) checkBridgeName(policy, bridgeOf(call!.prevResult));
  },
  mayWaitFor: () => ["firewalld", "legacy iptables"],
  missingPrevResult: "missing prevResult from earlier plugin",
  add,
  status(conf, host) {
    const { backend, why } = chooseFirewallBackend(conf.backend);
    const obstacle = obstacleTo(backend, conf.ingressPolicy, host);
    if (obstacle !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, `firewall by ${backend}: ${obstacle}`, why);
  },
  sweeps: ["firewall"],
});

function add(at: Attachment<FirewallConf>): Result {
  const { conf, prevResult } = at;
  const addresses = prevResult === undefined ? addressesNow(at) : addressesOf(prevResult.ips ?? []);
  at.inAdd(() => refuseSwitch(at));
  if (at.mayHave(addresses.length > 0)) {
    at.apply(firewall({
      backend: chooseFirewallBackend(conf.backend).backend,
      network: at.network,
      containerId: at.containerId,
      ifName: at.ifName,
      addresses,
      adminChain: conf.iptablesAdminChainName || ADMIN_CHAIN,
      zone: conf.firewalldZone || ZONE,
      ingress: ingressOf(conf, prevResult),
    }));
  }
  return prevResult ?? { cniVersion: conf.cniVersion };
}

/** iptables rules contain only an address, so without prevResult the addresses come from the link. */
function addressesNow({ host, ifName }: Attachment<FirewallConf>): string[] {
  return [...addressesOn(host, ifName)];
}

/** The addresses of all interfaces, without duplicates. */
function addressesOf(ips: readonly IpConfig[]): string[] {
  const addresses: string[] = [];
  for (const ip of ips) {
    const address = formatAddress(parsePrefix(ip.address)!.bytes);
    if (!addresses.includes(address)) addresses.push(address);
  }
  return addresses;
}

function ingressOf(conf: FirewallConf, prevResult: Result | undefined): Ingress | undefined {
  const policy = isolationOf(conf), bridge = bridgeOf(prevResult);
  return policy === undefined || bridge === undefined ? undefined : { policy, bridge };
}

/** What containers send each other there never meets the kernel's rules. */
function refuseSwitch({ conf, prevResult, host }: Attachment<FirewallConf>): void {
  const policy = isolationOf(conf), link = policy && getLink(host.route, bridgeOf(prevResult) ?? "");
  if (link?.kind !== "veth" || datapathOf(link, host) === undefined) return;
  throw new CniError(
    INVALID_CONFIG,
    `"ingressPolicy": "${policy}" has no effect: ${link.name} is a port of Open vSwitch, which forwards without the host's rules`,
    'keep networks apart by "vlan" of the plugin ovs',
  );
}

/** The ingress policies that isolate bridges. */
function isolationOf({ ingressPolicy: policy }: FirewallConf): Ingress["policy"] | undefined {
  return policy === "same-bridge" || policy === "isolated" ? policy : undefined;
}

/** The first interface of prevResult. */
function bridgeOf(prevResult: Result | undefined): string | undefined {
  return prevResult?.interfaces?.[0]?.name;
}
