/**
 * firewall: allows forwarding for a container's addresses, and isolates bridges if configured.
 *
 * Behaviour follows the reference plugin `plugins/meta/firewall`, with a third backend of our own. Owns in the kernel,
 * or in firewalld, the entries for the addresses. Chains and rules for bridges are shared and stay.
 */
import { CniError, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { asOwner } from "../../../contract/owner.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { formatAddress, parsePrefix } from "../../../net/address.ts";
import { firewall, obstacleToFirewall } from "../../../resources/packets/firewall/firewall.ts";
import { chooseFirewallBackend } from "../../../resources/packets/firewall/choose-backend.ts";
import type { Ingress } from "../../../resources/packets/firewall/spec.ts";
import { validateFirewallConf } from "./firewall.validate.gen.ts";
import { foreseenLink, type GuardedLink, guardedLink, noLink } from "./guarded-link.ts";
import { checkBridgeName, checkChainName, checkIngressPolicy, checkZone } from "./names.ts";
import type { IpConfig, Result } from "../../../cni/result.ts";
import type { FirewallConf } from "./firewall.schema.ts";
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
    if (policy !== undefined && call!.prevResult !== undefined) {
      checkBridgeName(policy, nameOfFirst(call!.prevResult));
    }
  },
  mayWaitFor: () => ["firewalld", "legacy iptables"],
  missingPrevResult: "missing prevResult from earlier plugin",
  add,
  status(conf, host) {
    const { backend, why } = chooseFirewallBackend(conf.backend);
    const obstacle = obstacleToFirewall(backend, conf.ingressPolicy, host);
    if (obstacle !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, `firewall by ${backend}: ${obstacle}`, why);
  },
  caveats(conf, placed) {
    const { firewallCaveats } = require("./caveats.ts") as typeof import("./caveats.ts");
    return firewallCaveats(conf, placed);
  },
  sweeps: ["firewall"],
});

function add(at: Attachment<FirewallConf>): Result {
  const { conf, prevResult } = at;
  // iptables rules contain only an address, so without prevResult the addresses come from the link.
  const addresses = prevResult ? addressesOf(prevResult.ips ?? []) : [...addressesOn(at.host, at.ifName)];
  const ingress = ingressOf(at, addresses);
  if (at.mayHave(addresses.length > 0 || ingress !== undefined)) {
    at.apply(firewall({
      backend: chooseFirewallBackend(conf.backend).backend,
      ...asOwner(at),
      addresses,
      adminChain: conf.iptablesAdminChainName || ADMIN_CHAIN,
      zone: conf.firewalldZone || ZONE,
      ingress,
    }));
  }
  return prevResult ?? { cniVersion: conf.cniVersion };
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

function ingressOf(at: Attachment<FirewallConf>, addresses: readonly string[]): Ingress | undefined {
  const { conf, prevResult, purpose } = at, policy = isolationOf(conf);
  if (policy === undefined || prevResult === undefined) return undefined;
  const isOurs = purpose === "make" || purpose === "plan";
  const link = isOurs
    ? at.examine(() => wantedLink(policy, addresses, prevResult, at))
    : recalledLink(policy, addresses, prevResult, at);
  if (!link?.name) return undefined;
  if (purpose !== "undo") checkBridgeName(policy, link.name);
  // Others may have made the attachment, in another form.
  return { policy, bridge: link.name, isOwn: link.isOwn || undefined, isKnownToAll: isOurs || undefined };
}

function wantedLink(
  policy: Ingress["policy"],
  addresses: readonly string[],
  prevResult: Result,
  at: Attachment<FirewallConf>,
): GuardedLink {
  const planned = at.purpose === "plan" ? foreseenLink(policy, prevResult, at) : undefined;
  const link = planned ?? guardedLink(policy, addresses, prevResult, at);
  if (link === undefined) throw noLink(policy, addresses);
  return link;
}

/** The link of an attachment that has no ledger. The host may have lost its route. */
function recalledLink(
  policy: Ingress["policy"],
  addresses: readonly string[],
  prevResult: Result,
  at: Attachment<FirewallConf>,
): GuardedLink | undefined {
  const name = nameOfFirst(prevResult), first = name === undefined ? undefined : { name, isOwn: false };
  // What stands for a link that is gone is nobody's.
  const isGone = at.purpose === "undo" && name && getLink(at.host.route, name) === undefined;
  if (isGone) return { name, isOwn: true };
  try {
    return guardedLink(policy, addresses, prevResult, at) ?? first;
  } catch (error) {
    if (at.purpose !== "undo" || !(error instanceof CniError)) throw error;
    return first;
  }
}

/** The ingress policies that isolate bridges. */
function isolationOf({ ingressPolicy: policy }: FirewallConf): Ingress["policy"] | undefined {
  return policy === "same-bridge" || policy === "isolated" ? policy : undefined;
}

/** The first interface of prevResult. */
function nameOfFirst(prevResult: Result | undefined): string | undefined {
  return prevResult?.interfaces?.[0]?.name;
}
