/** Options of `firewall` without the effect that they seem to have. */
import { undefinedOnError } from "../../../cni/error.ts";
import type { Caveat, Earlier, Placed } from "../../../contract/plugin.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { readAllRules } from "../../../ffi/all-rules.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { chainText } from "../../../net/netfilter/text.ts";
import { chainsInTheWay, type Senders } from "../../../resources/packets/firewall/accepted-elsewhere.ts";
import { chooseFirewallBackend } from "../../../resources/packets/firewall/choose-backend.ts";
import type { FirewallConf } from "./firewall.schema.ts";
import { familiesOf, subnetsOf } from "../../shared/way-out.ts";
import { BACKENDS } from "./names.ts";

export function firewallCaveats(conf: FirewallConf, { before, host }: Placed): Caveat[] {
  const caveats: Caveat[] = [];
  if (conf.backend !== "" && !BACKENDS.includes(conf.backend)) {
    const text = `is none of ${BACKENDS.join(", ")}, and counts as none: firewalld where it runs, else iptables`;
    caveats.push({ key: "backend", text });
  }
  const backend = host === undefined ? conf.backend : chooseFirewallBackend(conf.backend).backend;
  for (const [key, needed] of [["firewalldZone", "firewalld"], ["iptablesAdminChainName", "iptables"]] as const) {
    if (conf[key] === "" || !BACKENDS.includes(backend) || backend === needed) continue;
    caveats.push({ key, text: `has no effect: the backend is ${backend}` });
  }
  // In a chain whose link comes from a bridge, loopback only sets up another one.
  const makers = before.filter(({ own }) => own?.missingPrevResult === undefined), maker = makers.at(-1);
  if (!["", "open"].includes(conf.ingressPolicy) && maker && makers.every(({ own }) => own?.isBesideHost)) {
    const text = `has no effect behind ${maker.type}: the container's packets do not meet the host's rules`;
    caveats.push({ key: "ingressPolicy", text, isRefused: true });
  }
  if (host === undefined || backend !== "nftables") return caveats;
  const inTheWay = undefinedOnError(() => {
    const rules = readAllRules((ask) => ask(host.netfilter));
    return rules && chainsInTheWay(rules, sendersOf(before, host.route));
  });
  for (const chain of inTheWay ?? []) {
    const text =
      `nftables cannot allow what another chain drops, and ${chainText(chain)} drops what its own rules do not ` +
      'accept; accept the network there, or take "backend": "iptables"';
    caveats.push({ key: "backend", text });
  }
  return caveats;
}

function sendersOf(plugins: readonly Earlier[], socket: NetlinkSocket): Senders {
  const told = plugins.flatMap(({ document }) => subnetsOf(document));
  // Where only ADD will tell, any subnet.
  const subnets = told.length > 0
    ? told
    : familiesOf(plugins).map((family) => ({ bytes: new Uint8Array(family === 4 ? 4 : 16), bits: 0 }));
  const name = plugins.map(linkOf).find((link) => link !== undefined);
  // One that is still to be made has no index, and no rule that asks for it.
  return { link: name === undefined ? "any" : { name, index: getLink(socket, name)?.index ?? -1 }, subnets };
}

/** By which packets of its containers come. What is wrong with the configuration, ADD and STATUS say. */
function linkOf({ own, document }: Earlier): string | undefined {
  return undefinedOnError(() => own?.segment?.(own.validate(document)).link);
}
