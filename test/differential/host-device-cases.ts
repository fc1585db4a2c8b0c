/** Cases for both implementations of host-device. One end of a veth pair stands in for a network card. */
import type { Case, StepText } from "./cases.ts";

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const MAC = "0a:00:00:00:00:05";
/** The other end stays down, because the kernel reports carriers late. */
const cable = `
  ip link add far5 type veth peer name dev5
  ip link set dev5 address ${MAC} mtu 1400`;
const once: StepText[] = ["ADD c1", "CHECK c1", "DEL c1"];

function hostDevice(name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  const whole = { cniVersion: "1.0.0", name: "cardnet", type: "host-device", ...conf };
  return { name: `host-device, ${name}`, plugin: "host-device", conf: whole, before: cable, steps: once, ...rest };
}

export const hostDevices: Case[] = [
  ...["0.3.1", "0.4.0", "1.0.0"].map((cniVersion) =>
    hostDevice(cniVersion, { cniVersion, device: "dev5", ipam: dual }, {
      // IPv6 addresses are complete only on a link that carries packets.
      before: `${cable}; ip link set far5 addrgenmode none up`,
      steps: ["ADD c1", "! ip link set far5 down", "DEL c1"],
    })
  ),
  hostDevice("layer 2", { device: "dev5" }),
  hostDevice("by MAC", { hwaddr: MAC, ipam: v4 }),
  hostDevice("by directory", { kernelpath: "/sys/devices/virtual", ipam: v4 }),
  hostDevice("routes and dns", {
    device: "dev5",
    dns: { nameservers: ["10.1.1.1"] },
    ipam: { ...v4, routes: [{ dst: "0.0.0.0/0" }, { dst: "172.16.0.0/12", gw: "10.20.0.7" }] },
  }),
  hostDevice("CNI_ARGS of any kind", { device: "dev5", ipam: v4 }, { args: "IgnoreUnknown=1;K=V" }),
  hostDevice("no device", { ipam: v4 }, { steps: ["ADD c1"] }),
  hostDevice("no such device", { device: "dev9", ipam: v4 }, { steps: ["ADD c1"] }),
  hostDevice("a MAC that is none", { hwaddr: "0g:00", ipam: v4 }, { steps: ["ADD c1"] }),
  hostDevice("a directory elsewhere", { kernelpath: "/etc", ipam: v4 }, { steps: ["ADD c1"] }),
  hostDevice("CHECK after another MAC was set", { device: "dev5", ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 link set eth0 address 0a:00:00:00:00:09", "CHECK c1"],
    macs: ["0a:00:00:00:00:09"],
  }),
  hostDevice("CHECK after the link was renamed", { device: "dev5", ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 link set eth0 down; ip -n c1 link set eth0 name x", "CHECK c1"],
  }),
  hostDevice("DEL twice", { device: "dev5", ipam: v4 }, { steps: ["ADD c1", "DEL c1", "DEL c1"] }),
  hostDevice("DEL without a namespace", { device: "dev5", ipam: v4 }, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
  hostDevice("DEL after the link was renamed", { device: "dev5", ipam: v4 }, {
    steps: ["ADD c1", "! ip -n c1 link set eth0 down; ip -n c1 link set eth0 name x", "DEL c1"],
  }),
];
