/** The attachments of stories.test.ts: plugins with configurations, and the results that they restate. */
import type { Host } from "../../src/contract/host.ts";
import { fakeHost } from "../support/fake-host.ts";
import { tell } from "../support/story.ts";

const host = [
  { name: "cni0", mac: "02:00:00:00:00:01" },
  { name: "veth1", mac: "02:00:00:00:00:02" },
];
const inside = [
  { name: "other0", mac: "02:00:00:00:00:04", sandbox: "/run/netns/c1" },
  { name: "eth0", mac: "02:00:00:00:00:03", sandbox: "/run/netns/c1" },
];
const v4 = { address: "10.1.0.2/24", gateway: "10.1.0.1" }, v6 = { address: "fd00::2/64", gateway: "fd00::1" };
const prevResult = {
  cniVersion: "1.1.0",
  interfaces: [...host, ...inside],
  ips: [{ ...v4, interface: 3 }, { ...v6, interface: 3 }],
  routes: [{ dst: "192.0.2.0/24" }],
  dns: { nameservers: ["10.1.0.53"] },
};
const only = (...ips: Record<string, unknown>[]) => ({ prevResult: { ...prevResult, ips } });
const ipam = { type: "host-local" };
const lease = { ipam, prevResult };
const capability = { runtimeConfig: { mac: "02:00:00:00:00:0a" } };
const args = { args: { cni: { mac: "02:00:00:00:00:0b" } } };
const cniArgs = "IgnoreUnknown=1;MAC=02:00:00:00:00:0c";

type Case = [type: string, written: Record<string, unknown>, cniArgs?: string, host?: Host];

const bridges: Case[] = [
  ["bridge", { prevResult }],
  ["bridge", lease],
  ["bridge", { ...lease, isGateway: true, forceAddress: true, mtu: 1400 }],
  ["bridge", { ipam, ...only({ address: "10.1.0.2/24" }, { address: "fd00::2/64" }), isGateway: true }],
  ["bridge", { ipam, ...only({ address: "10.1.0.2/24" }) }],
  ["bridge", { ipam, ...only(v6), isDefaultGateway: true, enabledad: true }],
  ["bridge", { ipam, isDefaultGateway: true, prevResult: { ...prevResult, routes: [{ dst: "0.0.0.0/0" }] } }],
  ["bridge", {
    ipam,
    isDefaultGateway: true,
    prevResult: { ...prevResult, routes: [{ dst: "::/0", gw: "fd00::9" }] },
  }],
  ["bridge", { ...lease, isGateway: true, vlan: 7, mtu: 1400 }],
  ["bridge", { prevResult, isGateway: true, vlan: 7, promiscMode: true, portIsolation: true }],
  ["bridge", { prevResult, vlanTrunk: [{ id: 9 }, { minID: 3, maxID: 5 }, { id: 6 }], preserveDefaultVlan: true }],
  ["bridge", { prevResult, vlanTrunk: [], mtu: -1 }],
  ["bridge", { ...lease, ipMasq: true, ipMasqBackend: "nftables", hairpinMode: true }],
  ["bridge", { prevResult, ipMasq: true, ipMasqBackend: "nftables", macspoofchk: true }],
  ["bridge", { prevResult, disableContainerInterface: true }],
  ["bridge", { ...lease, bridge: "br5", ...capability, ...args }, cniArgs],
  ["bridge", { ...lease, ...args, dns: { nameservers: ["192.0.2.53"] } }, cniArgs],
  ["bridge", { ...lease, dns: {} }, cniArgs],
  ["bridge", { ipam }],
];

const links: Case[] = [
  ["ptp", { ...lease, mtu: 1400 }],
  ["ptp", { ipam, ...only(v4), mtu: -1, ipMasq: true, ipMasqBackend: "nftables" }],
  ["ptp", { ipam, ...only(v6, { address: "10.1.0.2/24" }) }],
  ["ptp", { ipam, prevResult: { ...prevResult, interfaces: [...inside, ...host] } }],
  ["ptp", { ipam }],
  ["ovs", { ...lease, bridge: "ovs0", vlan: 5, mtu: 1400 }],
  ["ovs", { prevResult, bridge: "ovs0", trunk: [{ id: 9 }, { minID: 3, maxID: 5 }], ofport_request: 7, vlan: 5 }],
  ["ovs", { prevResult, args: { cni: { MAC: "02:00:00:00:00:0b", OvnPort: "web-0" } }, link_state_check_retries: 3 }],
  ["ovs", { prevResult, bridge: "ovs0", vxlanID: 42, socket_file: "/run/db.sock", interface_type: "system" }],
  ["ovs", { bridge: "ovs0", ipam }],
  ["macvlan", { ...lease, master: "m0", bcqueuelen: 5, mtu: 1400 }],
  ["macvlan", { prevResult, master: "m0", mode: "passthru", linkInContainer: true }],
  ["macvlan", { prevResult, master: "m0", mode: "vepa", mac: "02:00:00:00:00:0D", mtu: -1 }],
  ["macvlan", { prevResult, master: "m0", mac: "02:00:00:00:00:0d" }, cniArgs],
  ["macvlan", { prevResult, master: "m0", mac: "02:00:00:00:00:0d", ...capability }, cniArgs],
  ["ipvlan", { ...lease, master: "m0" }],
  ["ipvlan", { ...lease, master: "m0", mode: "l3s", mtu: 1400, linkInContainer: true }],
  ["vlan", { ...lease, master: "m0", vlanId: 5 }],
  ["vlan", { ...lease, master: "m0", vlanId: 0, mtu: 1, linkInContainer: true }],
  ["dummy", lease],
  ["dummy", { ...lease, dns: { nameservers: ["192.0.2.53"] } }],
  ["tap", lease],
  ["tap", { prevResult, mac: "02:00:00:00:00:0d", mtu: 1, multiQueue: true, owner: 0, group: 5, bridge: "br5" }],
  ["tap", { prevResult, mtu: -1, selinuxContext: "system_u:system_r:container_t:s0" }, cniArgs],
  ["loopback", {}],
  ["loopback", { prevResult }],
  ["host-device", { ...lease, device: "d0" }],
  ["host-device", { prevResult, hwaddr: "02:00:00:00:00:0e" }],
  ["host-device", { prevResult, device: "d0", useInterfaceNetwork: true }],
  ["host-device", { ...lease, device: "d0", runtimeConfig: { deviceID: "0000:00:1f.6" } }],
];

const web = { hostPort: 8080, containerPort: 80, protocol: "TCP" };
const mapped = (...portMappings: Record<string, unknown>[]) => ({
  prevResult,
  backend: "nftables",
  runtimeConfig: { portMappings },
});
const alsoNowhere = { address: "10.9.0.9/24" };

const chained: Case[] = [
  ["portmap", { prevResult, backend: "nftables" }],
  ["portmap", mapped(web, { ...web, hostIP: "10.0.0.1" }, web)],
  ["portmap", mapped({ ...web, hostIP: "127.0.0.1" }, { ...web, protocol: "udp", hostIP: "FD00::1" })],
  ["portmap", mapped({ ...web, hostPort: 1, containerPort: 65535, protocol: "sctp" })],
  ["portmap", { ...mapped(web), snat: false }],
  ["portmap", { ...mapped(web), masqAll: true, markMasqBit: 0 }],
  ["portmap", { ...mapped(web), backend: "iptables", externalSetMarkChain: "KUBE-MARK-MASQ" }],
  ["portmap", { ...mapped(web), conditionsV4: ["ip saddr 192.0.2.0/24"] }],
  ["portmap", { ...mapped(web), backend: "iptables", conditionsV6: ["!", "-s", "fd00::/8"] }],
  ["portmap", { ...mapped(web), ...only({ ...v6, interface: 3 }) }],
  ["portmap", { ...mapped(web), ...only(alsoNowhere, { ...v4, interface: 3 }) }],
  ["portmap", { ...mapped(web), ...only({ ...v4, interface: 2 }, { ...v4, interface: 0 }) }],
  ["firewall", { prevResult, backend: "nftables" }],
  ["firewall", { ...only(v4, v4, v6), backend: "iptables", ingressPolicy: "same-bridge" }, "", fakeHost([])],
  [
    "firewall",
    { prevResult, backend: "nftables", ingressPolicy: "isolated", iptablesAdminChainName: "MINE" },
    "",
    fakeHost([]),
  ],
  ["firewall", { ...only(v4), backend: "nftables" }],
  ["firewall", { ...only(), backend: "firewalld", firewalldZone: "public", ingressPolicy: "open" }],
  ["firewall", { backend: "nftables" }],
  ["bandwidth", { prevResult }],
  ["tuning", { prevResult }],
  ["tuning", { prevResult, sysctl: { "net.core.somaxconn": "500", "net/ipv4/conf/IFNAME/arp_filter": "1" } }],
  ["tuning", { prevResult, mac: "02:00:00:00:00:0d", mtu: 1400, promisc: true, allmulti: false, txQLen: 0 }],
  ["tuning", { prevResult, mac: "02:00:00:00:00:0d", ...capability, dataDir: "/run/tuned" }, cniArgs],
  ["tuning", { prevResult, mac: "02:00:00:00:00:0d", promisc: true, mtu: 5 }, cniArgs],
  ["tuning", {
    prevResult,
    ...capability,
    sysctl: { "net.core.somaxconn": "500" },
    args: {
      cni: {
        mac: "02:00:00:00:00:0b",
        mtu: 1300,
        promisc: false,
        allmulti: true,
        txQLen: 7,
        sysctl: { "net.core.somaxconn": "600" },
      },
    },
    promisc: true,
  }],
  ["vrf", { prevResult, vrfname: "red" }],
  ["vrf", { prevResult, vrfname: "red", table: 5 }],
  ["sbr", { prevResult }],
];

const told = (purpose: "check" | "undo", cases: Case[]) =>
  cases.map(([type, written, args, host]) => {
    const { prevResult: given, ...conf } = written;
    const marks = [JSON.stringify(conf), ...args ? [args] : [], ...describeResult(given)];
    const title = `${purpose} ${type} ${marks.join(" ")}`;
    const text = () => {
      const { list, result } = tell(type, purpose, written, args, host);
      const lines = list.map(([kind, spec]) => `${kind} ${JSON.stringify(spec)}`);
      const isPassedOn = JSON.stringify(result) === JSON.stringify(given);
      return [title, ...lines, isPassedOn ? "result: prevResult" : `result ${JSON.stringify(result)}`].join("\n");
    };
    return { title, text };
  });

function describeResult(given: unknown): string[] {
  if (given === prevResult) return [];
  const { interfaces, ips, routes } = (given ?? {}) as Partial<typeof prevResult>;
  return [given === undefined ? "without prevResult" : `of ${JSON.stringify({ interfaces, ips, routes })}`];
}

/** DEL removes what the configuration may have said at ADD, and does not look at what it says about values. */
const undone: Case[] = [
  ["bridge", { prevResult, ipMasqBackend: "nftables" }],
  ["bridge", { ...lease, isGateway: true, vlan: 7, mtu: 1400, ipMasqBackend: "nftables" }],
  ["ptp", { ...lease, ipMasqBackend: "nftables" }],
  ["portmap", { prevResult, backend: "nftables" }],
  ["portmap", { ...mapped({ ...web, hostIP: "10.0.0.1" }), snat: false, conditionsV4: ["ip saddr 192.0.2.0/24"] }],
  ["firewall", { ...only(), backend: "nftables" }],
  ["bandwidth", { prevResult, ingressRate: 8000, ingressBurst: 8000 }],
  ["bandwidth", { prevResult: { ...prevResult, interfaces: [...host, { name: "bwp623e1c388032" }] } }],
  ["tuning", { prevResult, sysctl: { "net.core.somaxconn": "500" }, mtu: 1400 }],
  ["vrf", { prevResult, vrfname: "red" }],
  ["sbr", { prevResult, table: 5 }],
];

export const stories = [...told("check", [...bridges, ...links, ...chained]), ...told("undo", undone)];
