/** Options of `firewall` without the effect that they seem to have. */
import { undefinedOnError } from "../../../cni/error.ts";
import type { Caveat, Earlier, Placed } from "../../../contract/plugin.ts";
import { droppingChains } from "../../../ffi/netlink/nftables/chains.ts";
import { nameOfTable } from "../../../ffi/netlink/nftables/table.ts";
import { NF_INET_FORWARD } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { acceptsFrom, type Senders } from "../../../resources/packets/firewall/accepted-elsewhere.ts";
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
  const families = familiesOf(before), senders = sendersOf(before, families);
  for (const chain of droppingChains(host.netfilter, NF_INET_FORWARD, families)) {
    if (acceptsFrom(senders, chain, host.netfilter)) continue;
    const name = `${nameOfTable(chain.table)} ${chain.name}`;
    const text =
      `nftables cannot allow what another chain drops, and ${name} drops what its own rules do not accept; ` +
      'accept the network there, or take "backend": "iptables"';
    caveats.push({ key: "backend", text });
  }
  return caveats;
}

function sendersOf(plugins: readonly Earlier[], families: readonly (4 | 6)[]): Senders {
  const told = plugins.flatMap(({ document }) => subnetsOf(document));
  // Where only ADD will tell, any subnet.
  const subnets = told.length > 0
    ? told
    : families.map((family) => ({ bytes: new Uint8Array(family === 4 ? 4 : 16), bits: 0 }));
  return { link: plugins.map(linkOf).find((link) => link !== undefined), subnets };
}

/** By which packets of its containers come. What is wrong with the configuration, ADD and STATUS say. */
function linkOf({ own, document }: Earlier): string | undefined {
  return undefinedOnError(() => own?.segment?.(own.validate(document)).link);
}
