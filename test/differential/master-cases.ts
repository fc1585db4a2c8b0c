/** Cases for both implementations of macvlan, ipvlan and vlan. */
import type { Case, StepText } from "./cases.ts";
import type { Feature } from "../support/kernel-features.ts";

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const needs: Record<string, Feature> = { macvlan: "macvlan links", ipvlan: "ipvlan links", vlan: "VLAN links" };
const pair = "ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up";
const twoSteps: { steps: StepText[] } = { steps: ["ADD c1", "DEL c1"] };

function onMaster(type: string, name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  return {
    name: `${type}, ${name}`,
    plugin: type,
    conf: { cniVersion: "1.0.0", name: "lannet", type, master: "m0", ...conf },
    before: pair,
    needs: needs[type],
    ...rest,
  };
}

const MAC = "c2:11:22:33:44:55";
const defaultRoute = `${pair}; ip address add 10.20.0.99/24 dev m0; ip route add default via 10.20.0.254`;
const chained = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "m0" }],
  ips: [{ address: "10.20.0.77/24" }],
  routes: [{ dst: "10.0.0.0/8", gw: "10.20.0.254" }],
};

export const masterLinks: Case[] = [
  ...["0.2.0", "0.4.0", "1.0.0"].map((cniVersion) => onMaster("macvlan", cniVersion, { cniVersion, ipam: dual })),
  onMaster("macvlan", "routes and dns", {
    dns: { nameservers: ["10.1.1.1"] },
    ipam: { ...v4, routes: [{ dst: "0.0.0.0/0" }, { dst: "172.16.0.0/12", gw: "10.20.0.7" }] },
  }, twoSteps),
  onMaster("macvlan", "dns of the IPAM plugin", { ipam: { ...v4, resolvConf: "/run/resolv.conf" } }, {
    before: `${pair}; echo nameserver 10.9.9.9 >/run/resolv.conf`,
  }),
  ...["private", "vepa", "passthru", ""].map((mode) =>
    onMaster("macvlan", `mode "${mode}"`, { mode, ipam: v4 }, {
      before: `${pair}; ip link set m0 address ${MAC}`,
      macs: [MAC],
    })
  ),
  onMaster("macvlan", "unknown mode", { mode: "bridged", ipam: v4 }, twoSteps),
  onMaster("macvlan", "layer 2 only", {}),
  onMaster("macvlan", "mtu", { mtu: 1400, ipam: v4 }),
  onMaster("macvlan", "mtu above the master's", { mtu: 1600, ipam: v4 }, twoSteps),
  onMaster("macvlan", "mac", { mac: MAC, ipam: v4 }, { macs: [MAC] }),
  onMaster("macvlan", "mac by CNI_ARGS", { mac: "c2:00:00:00:00:01", ipam: v4 }, {
    args: `MAC=${MAC};IgnoreUnknown=1`,
    macs: [MAC],
  }),
  onMaster("macvlan", "invalid mac", { mac: "no mac", ipam: v4 }, twoSteps),
  onMaster("macvlan", "the default route's link", { master: undefined, ipam: v4 }, { before: defaultRoute }),
  onMaster("macvlan", "no default route", { master: undefined, ipam: v4 }, twoSteps),
  onMaster("macvlan", "no such master", { master: "gone", ipam: v4 }, twoSteps),
  onMaster("macvlan", "a master that is down", { ipam: v4 }, {
    before: "ip link add m0 type veth peer name m1; ip link set m1 up",
    ...twoSteps,
  }),
  onMaster("macvlan", "interface name taken in the container", { ipam: v4 }, {
    before: `${pair}; ip -n c1 link add eth0 type veth peer name other`,
    steps: ["ADD c1"],
  }),
  onMaster("macvlan", "a link of the host has the name", { ipam: v4 }, {
    before: `${pair}; ip link add eth0 type veth peer name eth1`,
  }),
  onMaster("macvlan", "two containers", { ipam: v4 }, {
    steps: ["ADD c1", "ADD c2", "CHECK c1", "DEL c1", "CHECK c2", "DEL c2"],
  }),
  onMaster("macvlan", "DEL after the master went", { ipam: v4 }, { steps: ["ADD c1", "! ip link del m0", "DEL c1"] }),
  onMaster("macvlan", "DEL with the namespace gone", { ipam: v4 }, {
    steps: ["ADD c1", "! ip netns del c1; ip netns add c1", {
      step: "DEL c1",
      env: { CNI_NETNS: "/var/run/netns/gone" },
    }],
  }),
  onMaster("macvlan", "CHECK after the link went", { ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 link del eth0", "CHECK c1", "DEL c1"],
  }),

  // Only a few, because they run under emulation.
  onMaster("ipvlan", "dual stack", { ipam: dual }),
  onMaster("ipvlan", "in a chain", { master: undefined, prevResult: chained }, twoSteps),
  onMaster("ipvlan", "DEL without a master to be found", { master: undefined, ipam: v4 }, {
    before: defaultRoute,
    steps: ["ADD c1", "! ip route del default", { step: "DEL c1", conf: { prevResult: undefined } }],
  }),

  onMaster("vlan", "dual stack", { vlanId: 7, ipam: dual }),
  onMaster("vlan", "DEL after the master went", { vlanId: 7, ipam: v4 }, {
    steps: ["ADD c1", "! ip link del m0", "DEL c1"],
  }),
];
