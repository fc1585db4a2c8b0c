/**
 * Every kind of resource by the name it has in the ledger, loaded when a ledger names it. A test compares it with the
 * files.
 */
import type { AnyKind } from "../engine/resource.ts";

const table: Record<string, () => AnyKind> = {
  "addressing": () => require("./addressing.ts").addressingKind,
  "announcement": () => require("./announcement.ts").announcementKind,
  "bridge": () => require("./bridge.ts").bridgeKind,
  "bridge-gateway": () => require("./bridge-gateway.ts").bridgeGatewayKind,
  "bridge-port": () => require("./bridge-port.ts").bridgePortKind,
  "carrier": () => require("./carrier.ts").carrierKind,
  "container-link": () => require("./container-link.ts").containerLinkKind,
  "firewall": () => require("./firewall.ts").firewallKind,
  "forwarding": () => require("./forwarding.ts").forwardingKind,
  "gateway-side": () => require("./gateway-side.ts").gatewaySideKind,
  "ifb": () => require("./ifb.ts").ifbKind,
  "lent-link": () => require("./lent-link.ts").lentLinkKind,
  "link-routes": () => require("./link-routes.ts").linkRoutesKind,
  "link-settings": () => require("./link-settings.ts").linkSettingsKind,
  "localhost-access": () => require("./localhost-access.ts").localhostAccessKind,
  "loopback-up": () => require("./loopback-up.ts").loopbackUpKind,
  "mac-spoof-check": () => require("./mac-spoof-check.ts").macSpoofCheckKind,
  "masquerade": () => require("./masquerade.ts").masqueradeKind,
  "port-mappings": () => require("./port-mappings.ts").portMappingsKind,
  "redirect": () => require("./redirect.ts").redirectKind,
  "source-rule": () => require("./source-rule.ts").sourceRuleKind,
  "sysctls": () => require("./sysctls.ts").sysctlsKind,
  "tap": () => require("./tap.ts").tapKind,
  "traffic-limit": () => require("./traffic-limit.ts").trafficLimitKind,
  "veth": () => require("./veth.ts").vethKind,
  "vlan-gateway": () => require("./vlan-gateway.ts").vlanGatewayKind,
  "vrf": () => require("./vrf.ts").vrfKind,
  "vrf-member": () => require("./vrf-member.ts").vrfMemberKind,
  "withdrawn-routes": () => require("./withdrawn-routes.ts").withdrawnRoutesKind,
};

export function loadKind(name: string): AnyKind | undefined {
  return Object.hasOwn(table, name) ? table[name]!() : undefined;
}

export const kindNames: readonly string[] = Object.keys(table);
