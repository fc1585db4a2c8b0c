/** Every plugin by name. Loading is lazy: a process loads only the plugin it runs. Sorted like the folders. */
import { meansPlugin } from "../cni/plugin-name.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";

const table: Record<string, () => PluginDefinition<PluginConfig>> = {
  "bandwidth": () =>
    (require("./meta/bandwidth/bandwidth.ts") as typeof import("./meta/bandwidth/bandwidth.ts")).default,
  "bridge": () => (require("./main/bridge/bridge.ts") as typeof import("./main/bridge/bridge.ts")).default,
  "dhcp": () => (require("./ipam/dhcp/dhcp.ts") as typeof import("./ipam/dhcp/dhcp.ts")).default,
  "dummy": () => (require("./main/dummy/dummy.ts") as typeof import("./main/dummy/dummy.ts")).default,
  "firewall": () => (require("./meta/firewall/firewall.ts") as typeof import("./meta/firewall/firewall.ts")).default,
  "flannel": () => (require("./meta/flannel/flannel.ts") as typeof import("./meta/flannel/flannel.ts")).default,
  "host-device": () =>
    (require("./main/host-device/host-device.ts") as typeof import("./main/host-device/host-device.ts")).default,
  "host-local": () =>
    (require("./ipam/host-local/host-local.ts") as typeof import("./ipam/host-local/host-local.ts")).default,
  "ipvlan": () => (require("./main/ipvlan/ipvlan.ts") as typeof import("./main/ipvlan/ipvlan.ts")).default,
  "loopback": () => (require("./main/loopback/loopback.ts") as typeof import("./main/loopback/loopback.ts")).default,
  "macvlan": () => (require("./main/macvlan/macvlan.ts") as typeof import("./main/macvlan/macvlan.ts")).default,
  "ovs": () => (require("./main/ovs/ovs.ts") as typeof import("./main/ovs/ovs.ts")).default,
  "patchbay-cluster": () =>
    (require(
      "./ipam/patchbay-cluster/patchbay-cluster.ts",
    ) as typeof import("./ipam/patchbay-cluster/patchbay-cluster.ts")).default,
  "portmap": () => (require("./meta/portmap/portmap.ts") as typeof import("./meta/portmap/portmap.ts")).default,
  "ptp": () => (require("./main/ptp/ptp.ts") as typeof import("./main/ptp/ptp.ts")).default,
  "sbr": () => (require("./meta/sbr/sbr.ts") as typeof import("./meta/sbr/sbr.ts")).default,
  "static": () => (require("./ipam/static/static.ts") as typeof import("./ipam/static/static.ts")).default,
  "tap": () => (require("./main/tap/tap.ts") as typeof import("./main/tap/tap.ts")).default,
  "tuning": () => (require("./meta/tuning/tuning.ts") as typeof import("./meta/tuning/tuning.ts")).default,
  "vlan": () => (require("./main/vlan/vlan.ts") as typeof import("./main/vlan/vlan.ts")).default,
  "vrf": () => (require("./meta/vrf/vrf.ts") as typeof import("./meta/vrf/vrf.ts")).default,
};

/** For podman's networks: src/frontends/netavark calls them in process. No CNI configuration names them. */
const netavarkDrivers: typeof table = {
  "netavark-bridge": () =>
    (require(
      "./netavark/netavark-bridge/netavark-bridge.ts",
    ) as typeof import("./netavark/netavark-bridge/netavark-bridge.ts")).default as PluginDefinition<PluginConfig>,
  "netavark-vlan": () =>
    (require(
      "./netavark/netavark-vlan/netavark-vlan.ts",
    ) as typeof import("./netavark/netavark-vlan/netavark-vlan.ts"))
      .default as PluginDefinition<PluginConfig>,
};

export const pluginNames: readonly string[] = Object.keys(table);
export const netavarkDriverNames: readonly string[] = Object.keys(netavarkDrivers);

/** The plugin that a program's name, or a type in a configuration, means. None has a name that means another. */
export function pluginNamed(name: string): string | undefined {
  if (Object.hasOwn(table, name)) return name;
  if (isNetavarkDriver(name)) return undefined;
  return pluginNames.find((plugin) => meansPlugin(name, plugin));
}

export function loadPlugin(type: string): PluginDefinition<PluginConfig> | undefined {
  const name = pluginNamed(type);
  return name === undefined ? undefined : table[name]!();
}

/** The plugin that a ledger names. Ledgers also name netavark's drivers. */
export function loadRecorded(name: string): PluginDefinition<PluginConfig> | undefined {
  return isNetavarkDriver(name) ? netavarkDrivers[name]!() : loadPlugin(name);
}

export function isNetavarkDriver(name: string): boolean {
  return Object.hasOwn(netavarkDrivers, name);
}
