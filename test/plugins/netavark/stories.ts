/** The attachments of drivers.test.ts: podman's networks, and what the plugins for them restate. */
import netavarkBridge from "../../../src/plugins/netavark/netavark-bridge/netavark-bridge.ts";
import netavarkVlan from "../../../src/plugins/netavark/netavark-vlan/netavark-vlan.ts";
import { driverConf, mapping, v4, v6 } from "../../support/netavark/driver-conf.ts";
import { tell } from "../../support/story.ts";

const bridge = netavarkBridge.name, vlan = netavarkVlan.name;
type Conf = Parameters<typeof driverConf>[0];
type Story = [title: string, type: string, purpose: "check" | "undo", conf: Conf, prevResult?: object];

const aardvarkBinary = "/usr/lib/podman/aardvark-dns";
const leased = {
  cniVersion: "1.1.0",
  ips: [{ address: "192.0.2.9/24", gateway: "192.0.2.1" }],
  routes: [{ dst: "0.0.0.0/0", gw: "192.0.2.1" }],
  dns: { nameservers: ["192.0.2.53"], domain: "example" },
};
const dhcp = { ipam: { type: "dhcp" }, attachment: { static_ips: undefined } };
const unmanaged = { mode: "unmanaged" };
const ports = [
  mapping(),
  mapping({ host_port: 9000, container_port: 90, range: 3, protocol: "udp" }),
  mapping({ host_port: 8081, host_ip: "192.0.2.1", range: 0 }),
  mapping({ host_port: 8082, host_ip: "FD00::1", protocol: "sctp" }),
];
const elsewhere = [mapping({ host_ip: "192.0.2.1" })];
const ofV6 = { network: { subnets: [v6] }, attachment: { static_ips: ["fd08::9"] } };
const routes = [
  { destination: "10.9.0.0/16", gateway: "10.8.0.2", metric: 0 },
  { destination: "fd09::/16", gateway: "fd08::2" },
  { destination: "10.10.0.0/16", gateway: "192.0.2.2", route_type: "unicast" },
  { destination: "10.11.0.0/16", route_type: "blackhole" },
  { destination: "10.12.0.0/16", gateway: "10.8.0.3", route_type: "" },
];

const bridges: Story[] = [
  ["two families", bridge, "check", {}],
  ["MAC address and name on the host", bridge, "check", {
    attachment: { static_mac: "02:00:00:00:00:09", options: { host_interface_name: "mine0" } },
  }],
  ["names", bridge, "check", {
    aardvarkBinary,
    network: { dns_enabled: true, network_dns_servers: ["192.0.2.53"] },
    attachment: { aliases: ["www", "web1"] },
    dns_servers: ["192.0.2.54"],
  }],
  ["names in an internal network, at another port", bridge, "check", {
    aardvarkBinary,
    dnsPort: 1553,
    network: { dns_enabled: true, internal: true },
    port_mappings: ports,
  }],
  ["without aardvark-dns, the container's servers", bridge, "check", {
    network: { dns_enabled: true },
    dns_servers: ["192.0.2.54"],
  }],
  ["aardvark-dns, and a network without names", bridge, "check", { aardvarkBinary }],
  ["published ports", bridge, "check", { port_mappings: ports }],
  ["published ports of an address elsewhere", bridge, "check", { port_mappings: elsewhere }],
  ["published ports, and addresses of IPv6 alone", bridge, "check", { ...ofV6, port_mappings: ports }],
  ["published ports, and no addresses", bridge, "check", {
    network: { ipam_options: { driver: "none" } },
    port_mappings: ports,
  }],
  ["published ports by firewalld", bridge, "check", { firewall: "firewalld", dnsPort: 1553, port_mappings: ports }],
  ["internal, by firewalld", bridge, "check", {
    firewall: "firewalld",
    network: { internal: true },
    port_mappings: ports,
  }],
  ["without a firewall", bridge, "check", { firewall: "none", port_mappings: ports }],
  ["several subnets of a family", bridge, "check", {
    network: {
      subnets: [{ subnet: "10.7.0.0/24" }, v4, { subnet: "10.6.0.0/16", gateway: "10.6.0.1" }],
      dns_enabled: true,
    },
    attachment: { static_ips: ["10.6.0.9", "10.8.0.9", "10.7.0.9"] },
    port_mappings: [mapping()],
  }],
  ["routes", bridge, "check", { network: { routes } }],
  ["one route elsewhere, and no default route", bridge, "check", {
    network: { routes: routes.slice(2, 3), internal: true },
  }],
  ["metric, MTU, VRF", bridge, "check", { options: { metric: "7", mtu: "1400", vrf: "blue" } }],
  ["no default route, outbound addresses", bridge, "check", {
    options: { no_default_route: "true", outbound_addr4: "192.0.2.4", outbound_addr6: "2001:db8::4" },
  }],
  ["VLAN 5, isolated", bridge, "check", { options: { vlan: "5", isolate: "true" }, isolatesByDefault: false }],
  ["VLAN 0, not isolated", bridge, "check", { options: { vlan: "0", isolate: "false" } }],
  ["podman 5: no options", bridge, "check", { isolatesByDefault: false }],
  ["podman 5: other options", bridge, "check", { options: { mtu: "1400" }, isolatesByDefault: false }],
  ["a bridge of the host's", bridge, "check", { options: unmanaged, port_mappings: ports }],
  [
    "a bridge of the host's, and DHCP",
    bridge,
    "check",
    { ...dhcp, network: { options: unmanaged, ipam_options: { driver: "dhcp" }, subnets: [], routes } },
    leased,
  ],
  ["subnets that are only noted", bridge, "check", { network: { subnets: [] } }],
  ["everything that DEL removes", bridge, "undo", {
    isRootless: false,
    aardvarkBinary,
    network: { dns_enabled: true },
    options: { isolate: "false" },
    port_mappings: ports,
  }],
  ["DEL when podman has lost the addresses", bridge, "undo", { isRootless: false, attachment: { static_ips: [] } }],
  ["DEL of an internal network", bridge, "undo", {
    isRootless: false,
    firewall: "firewalld",
    network: { internal: true },
  }],
  ["DEL of a container of IPv6 alone", bridge, "undo", {
    ...ofV6,
    isRootless: false,
    options: { isolate: "true", outbound_addr6: "2001:db8::4" },
  }],
  ["DEL on a bridge of the host's", bridge, "undo", { isRootless: false, options: unmanaged }],
];

const onParent = { driver: "macvlan", network_interface: "parent0" };
const vlans: Story[] = [
  ["macvlan", vlan, "check", { network: onParent, dns_servers: ["192.0.2.54"] }],
  ["macvlan with options", vlan, "check", {
    network: { ...onParent, routes },
    options: { mode: "private", mtu: "1400", bclim: "-1", metric: "7" },
    attachment: { static_mac: "02:00:00:00:00:09" },
  }],
  ["macvlan in mode passthru", vlan, "check", {
    network: onParent,
    options: { mode: "passthru" },
    attachment: { static_mac: "02:00:00:00:00:09" },
  }],
  [
    "macvlan, and DHCP",
    vlan,
    "check",
    { ...dhcp, network: { ...onParent, ipam_options: { driver: "dhcp" }, subnets: [] } },
    leased,
  ],
  [
    "macvlan, DHCP, and the container's servers",
    vlan,
    "check",
    { ...dhcp, network: { ...onParent, ipam_options: { driver: "dhcp" }, subnets: [] }, dns_servers: ["192.0.2.54"] },
    { ...leased, dns: {} },
  ],
  ["macvlan without addresses", vlan, "check", { network: { ...onParent, ipam_options: { driver: "none" } } }],
  ["ipvlan", vlan, "check", {
    network: { ...onParent, driver: "ipvlan", internal: true },
    options: { mode: "l3" },
    attachment: { static_mac: "02:00:00:00:00:09" },
  }],
  ["ipvlan without default route", vlan, "check", {
    network: { ...onParent, driver: "ipvlan" },
    options: { no_default_route: "true" },
  }],
  ["DEL of macvlan without a parent", vlan, "undo", {
    network: { ...onParent, network_interface: undefined },
    attachment: { static_ips: undefined },
  }],
];

/** Each resource with its specification, and the result. */
function linesOf([_title, type, purpose, conf, prevResult]: Story): string[] {
  // What is undefined is left out, as in the text that a ledger keeps.
  const written = JSON.parse(JSON.stringify({ ...driverConf(conf), prevResult }));
  const { list, result } = tell(type, purpose, written);
  return [...list, ["result", result]].map(([kind, spec]) => `${kind} ${JSON.stringify(spec)}`);
}

/** The first story has everything, the others what is not as in the first of their plugin. */
export const stories = [bridges, vlans].flatMap((all) =>
  all.map((story, index) => ({
    title: story[0],
    text() {
      const first = linesOf(all[0]!), lines = linesOf(story);
      if (index === 0) return [story[0], ...lines].join("\n");
      const kinds = (some: string[]) => some.map((line) => line.split(" ")[0]!);
      const missing = kinds(first).filter((kind) => !kinds(lines).includes(kind));
      const others = [...missing.map((kind) => `no ${kind}`), ...lines.filter((line) => !first.includes(line))];
      return [story[0], ...others.length === 0 ? ["as the first"] : others].join("\n");
    },
  }))
);
