/**
 * A network of podman's in firewalld: its subnets are sources of netavark's zone, and a rule leads to
 * aardvark-dns when it has another port. The first container makes it, and the last one removes it.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { unlessRefused, whyNotRunning } from "../../interop/firewalld/client.ts";
import { DNS_PORT } from "./shared/dns-port.ts";
import {
  changePolicy,
  ensureObjects,
  inFirewalld,
  PORTS,
  readPolicy,
  richRule,
  whereItRuns,
  ZONE,
} from "./shared/firewalld-objects.ts";
import type { NetworkRulesSpec } from "./shared/nft-rules.ts";
import { isSpare } from "./shared/bridge.ts";

type FirewalldNetworkSpec = Pick<NetworkRulesSpec, "bridge" | "subnets" | "dnsPort" | "dnsServers">;

export const firewalldNetworkKind: ResourceKind<FirewalldNetworkSpec> = {
  kind: "firewalld-network",
  apply(spec) {
    inFirewalld((call) => {
      ensureObjects(call);
      for (const { subnet } of spec.subnets) {
        if (call("zone", "getZoneOfSource", [subnet]) === ZONE) continue;
        call("zone", "changeZoneOfSource", [ZONE, subnet]);
      }
      const rules = dnsRules(spec);
      if (rules.length === 0) return;
      changePolicy(call, PORTS, ({ forwards, rich }) => ({
        forwards,
        rich: [...rich, ...rules.filter((rule) => !rich.includes(rule))],
      }));
    });
  },
  verify(spec) {
    const reason = whyNotRunning(), differences: string[] = [];
    if (reason !== undefined) return [reason];
    whereItRuns((call) => {
      for (const { subnet } of spec.subnets) {
        if (call("zone", "getZoneOfSource", [subnet]) !== ZONE) {
          differences.push(`${subnet} is not in firewalld's zone ${ZONE}`);
        }
      }
      const rules = dnsRules(spec), present = rules.length === 0 ? [] : readPolicy(call, PORTS).rich;
      for (const rule of rules) {
        if (!present.includes(rule)) differences.push(`firewalld's policy ${PORTS} lacks ${rule}`);
      }
    });
    return differences;
  },
  remove(spec, host) {
    if (!isSpare(spec.bridge, host)) return;
    whereItRuns((call) => {
      for (const { subnet } of spec.subnets) unlessRefused(() => call("zone", "removeSource", [ZONE, subnet]));
      const rules = dnsRules(spec);
      if (rules.length === 0) return;
      unlessRefused(() =>
        changePolicy(call, PORTS, ({ forwards, rich }) => ({
          forwards,
          rich: rich.filter((rule) => !rules.includes(rule)),
        })), "INVALID_POLICY");
    });
  },
  repair: (spec, host) => firewalldNetworkKind.apply(spec, host),
  describe: ({ subnets }) => `${subnets.map(({ subnet }) => subnet).join(", ")} in firewalld's zone ${ZONE}`,
};

export const firewalldNetwork = resource(firewalldNetworkKind);

/** Only for udp, like netavark, although tcp would need a rule as well. */
function dnsRules({ dnsPort, dnsServers }: FirewalldNetworkSpec): string[] {
  if (dnsPort === DNS_PORT) return [];
  return dnsServers.map((address) =>
    richRule({ hostIp: address, hostPort: `${DNS_PORT}`, protocol: "udp", containerPort: `${dnsPort}`, address })
  );
}
