/**
 * Every kind of resource by its name in the ledger, loaded when a ledger names it.
 *
 * A folder is a theme, and a kind has a file of its name in it. A kind of several files has a folder of its name. What
 * several kinds use is in the theme's `shared/`. A test compares this table with the files.
 */
import type { AnyKind } from "../contract/resource.ts";

const table: Record<string, () => AnyKind> = {
  "aardvark-names": () =>
    (require(
      "./netavark/aardvark-names/aardvark-names.ts",
    ) as typeof import("./netavark/aardvark-names/aardvark-names.ts"))
      .aardvarkNamesKind,
  "addressing": () =>
    (require("./address/addressing/addressing.ts") as typeof import("./address/addressing/addressing.ts"))
      .addressingKind,
  "announcement": () =>
    (require("./address/announcement.ts") as typeof import("./address/announcement.ts")).announcementKind,
  "bridge": () => (require("./link/bridge.ts") as typeof import("./link/bridge.ts")).bridgeKind,
  "bridge-gateway": () =>
    (require("./address/bridge-gateway.ts") as typeof import("./address/bridge-gateway.ts")).bridgeGatewayKind,
  "bridge-port": () => (require("./link/bridge-port.ts") as typeof import("./link/bridge-port.ts")).bridgePortKind,
  "carrier": () => (require("./link/carrier.ts") as typeof import("./link/carrier.ts")).carrierKind,
  "container-link": () =>
    (require("./link/container-link.ts") as typeof import("./link/container-link.ts")).containerLinkKind,
  "delegation": () =>
    (require("./delegated/delegation.ts") as typeof import("./delegated/delegation.ts")).delegationKind,
  "firewall": () =>
    (require("./packets/firewall/firewall.ts") as typeof import("./packets/firewall/firewall.ts")).firewallKind,
  "firewall-state": () =>
    (require("./netavark/firewall-state.ts") as typeof import("./netavark/firewall-state.ts")).firewallStateKind,
  "firewalld-network": () =>
    (require("./netavark/firewalld-network.ts") as typeof import("./netavark/firewalld-network.ts"))
      .firewalldNetworkKind,
  "firewalld-ports": () =>
    (require("./netavark/firewalld-ports.ts") as typeof import("./netavark/firewalld-ports.ts")).firewalldPortsKind,
  "forwarding": () => (require("./kernel/forwarding.ts") as typeof import("./kernel/forwarding.ts")).forwardingKind,
  "gateway-side": () =>
    (require("./address/gateway-side.ts") as typeof import("./address/gateway-side.ts")).gatewaySideKind,
  "ifb": () => (require("./traffic/ifb.ts") as typeof import("./traffic/ifb.ts")).ifbKind,
  "ipam": () => (require("./delegated/lease.ts") as typeof import("./delegated/lease.ts")).leaseKind,
  "host-end-up": () => (require("./link/host-end-up.ts") as typeof import("./link/host-end-up.ts")).hostEndUpKind,
  "host-copy-dropped": () =>
    (require("./packets/host-copy-dropped.ts") as typeof import("./packets/host-copy-dropped.ts"))
      .hostCopyDroppedKind,
  "lent-link": () =>
    (require("./link/lent-link/lent-link.ts") as typeof import("./link/lent-link/lent-link.ts")).lentLinkKind,
  "link-routes": () =>
    (require("./routing/link-routes.ts") as typeof import("./routing/link-routes.ts")).linkRoutesKind,
  "link-settings": () =>
    (require("./link/link-settings.ts") as typeof import("./link/link-settings.ts")).linkSettingsKind,
  "localhost-access": () =>
    (require("./packets/localhost-access.ts") as typeof import("./packets/localhost-access.ts")).localhostAccessKind,
  "loopback-up": () => (require("./link/loopback-up.ts") as typeof import("./link/loopback-up.ts")).loopbackUpKind,
  "mac-spoof-check": () =>
    (require("./packets/mac-spoof-check.ts") as typeof import("./packets/mac-spoof-check.ts")).macSpoofCheckKind,
  "masquerade": () =>
    (require("./packets/masquerade/masquerade.ts") as typeof import("./packets/masquerade/masquerade.ts"))
      .masqueradeKind,
  "network-rules": () =>
    (require("./netavark/network-rules.ts") as typeof import("./netavark/network-rules.ts")).networkRulesKind,
  "ovs-port": () =>
    (require("./link/ovs-port/ovs-port.ts") as typeof import("./link/ovs-port/ovs-port.ts")).ovsPortKind,
  "podman-bridge": () =>
    (require("./netavark/podman-bridge.ts") as typeof import("./netavark/podman-bridge.ts")).podmanBridgeKind,
  "port-isolation": () =>
    (require("./packets/port-isolation.ts") as typeof import("./packets/port-isolation.ts")).portIsolationKind,
  "port-mappings": () =>
    (require("./packets/port-mappings/port-mappings.ts") as typeof import("./packets/port-mappings/port-mappings.ts"))
      .portMappingsKind,
  "published-ports": () =>
    (require("./netavark/published-ports.ts") as typeof import("./netavark/published-ports.ts")).publishedPortsKind,
  "redirect": () => (require("./traffic/redirect.ts") as typeof import("./traffic/redirect.ts")).redirectKind,
  "source-rule": () =>
    (require("./routing/source-rule.ts") as typeof import("./routing/source-rule.ts")).sourceRuleKind,
  "static-routes": () =>
    (require("./netavark/static-routes.ts") as typeof import("./netavark/static-routes.ts")).staticRoutesKind,
  "sysctl-file": () =>
    (require("./netavark/sysctl-file.ts") as typeof import("./netavark/sysctl-file.ts")).sysctlFileKind,
  "sysctls": () => (require("./kernel/sysctls.ts") as typeof import("./kernel/sysctls.ts")).sysctlsKind,
  "tap": () => (require("./link/tap/tap.ts") as typeof import("./link/tap/tap.ts")).tapKind,
  "traffic-limit": () =>
    (require("./traffic/traffic-limit/traffic-limit.ts") as typeof import("./traffic/traffic-limit/traffic-limit.ts"))
      .trafficLimitKind,
  "trusted-subnets": () =>
    (require("./netavark/trusted-subnets.ts") as typeof import("./netavark/trusted-subnets.ts")).trustedSubnetsKind,
  "tx-checksums": () =>
    (require("./link/tx-checksums.ts") as typeof import("./link/tx-checksums.ts")).txChecksumsKind,
  "veth": () => (require("./link/veth.ts") as typeof import("./link/veth.ts")).vethKind,
  "vlan-gateway": () =>
    (require("./address/vlan-gateway.ts") as typeof import("./address/vlan-gateway.ts")).vlanGatewayKind,
  "vrf": () => (require("./routing/vrf.ts") as typeof import("./routing/vrf.ts")).vrfKind,
  "vrf-member": () => (require("./routing/vrf-member.ts") as typeof import("./routing/vrf-member.ts")).vrfMemberKind,
  "withdrawn-routes": () =>
    (require("./routing/withdrawn-routes.ts") as typeof import("./routing/withdrawn-routes.ts")).withdrawnRoutesKind,
};

export function loadKind(name: string): AnyKind | undefined {
  return Object.hasOwn(table, name) ? table[name]!() : undefined;
}

export const kindNames: readonly string[] = Object.keys(table);
