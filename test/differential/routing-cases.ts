/** Cases for both implementations of ptp, sbr and vrf. */
import type { Case, StepText } from "./cases.ts";

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const v6 = { type: "host-local", ranges: [[{ subnet: "fd20::/64" }]] };
const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const defaultRoutes = { routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] };
const twoSteps: { steps: StepText[] } = { steps: ["ADD c1", "DEL c1"] };

function ptp(name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  const whole = { cniVersion: "1.0.0", name: "ptpnet", type: "ptp", ...conf };
  return { name: `ptp, ${name}`, plugin: "ptp", conf: whole, ...rest };
}

const dns = { nameservers: ["10.1.1.1"], search: ["example.org"] };
const fixed = (...addresses: Record<string, string>[]) => ({ type: "static", addresses });

export const ptps: Case[] = [
  ...["0.2.0", "0.4.0", "1.0.0"].map((cniVersion) =>
    ptp(cniVersion, { cniVersion, ipam: { ...dual, ...defaultRoutes } })
  ),
  ptp("IPv4 alone", { ipam: v4 }),
  ptp("IPv6 alone", { ipam: v6 }),
  ptp("routes with gateways", {
    ipam: { ...v4, routes: [{ dst: "0.0.0.0/0" }, { dst: "172.16.0.0/12", gw: "10.20.0.7" }] },
  }),
  ptp("mtu", { mtu: 1400, ipam: v4 }),
  ptp("ipMasq", { ipMasq: true, ipam: dual }),
  ptp("two containers", { ipMasq: true, ipam: v4 }, { steps: ["ADD c1", "ADD c2", "CHECK c1", "DEL c1", "DEL c2"] }),
  ptp("dns", { dns, ipam: v4 }),
  ptp("two addresses, each with a gateway", {
    ipam: fixed({ address: "10.20.0.5/24", gateway: "10.20.0.1" }, { address: "10.30.0.5/24", gateway: "10.30.0.1" }),
  }),
  ptp("DEL without a namespace", { ipam: v4 }, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
  ptp("CNI_ARGS of any kind", { ipam: v4 }, { args: "IgnoreUnknown=1;K=V", ...twoSteps }),
];

/** Without link-local addresses, which appear by themselves. */
const pair = `
  ip link add host1 type veth peer name eth0 netns c1
  ip link set host1 addrgenmode none; ip -n c1 link set eth0 addrgenmode none
  ip link set host1 up; ip -n c1 link set eth0 up`;
const withV4 = `${pair}
  ip -n c1 address add 10.20.0.5/24 dev eth0; ip -n c1 route add default via 10.20.0.1
  ip -n c1 route add 192.168.0.0/16 via 10.20.0.7 metric 30; ip -n c1 route add 172.16.0.0/12 dev eth0`;
const withV6 = `${pair}
  ip -n c1 address add fd20::5/64 dev eth0 nodad; ip -n c1 route add default via fd20::1
  ip -n c1 route add fd99::/64 via fd20::7`;
const result = (...ips: Record<string, unknown>[]) => ({
  cniVersion: "1.0.0",
  interfaces: [{ name: "host1" }, { name: "eth0", sandbox: "/var/run/netns/c1" }],
  ips,
});
const ipV4 = { interface: 1, address: "10.20.0.5/24", gateway: "10.20.0.1" };
const ipV6 = { interface: 1, address: "fd20::5/64", gateway: "fd20::1" };
const steps: StepText[] = ["ADD c1", "CHECK c1", "DEL c1"];

function sbr(name: string, prevResult: unknown, rest: Partial<Case> = {}): Case {
  const conf = { cniVersion: "1.0.0", name: "sbrnet", type: "sbr", prevResult };
  return { name: `sbr, ${name}`, plugin: "sbr", before: withV4, steps, ...rest, conf };
}

export const sbrs: Case[] = [
  sbr("IPv4", result(ipV4)),
  sbr("IPv6", result(ipV6), { before: withV6 }),
  sbr("no gateway of its own", result({ ...ipV4, gateway: undefined })),
  sbr("an address of no interface", result({ ...ipV4, interface: undefined })),
  sbr("two addresses of one subnet", result(ipV4, { ...ipV4, address: "10.20.0.6/24" }), {
    before: `${withV4}; ip -n c1 address add 10.20.0.6/24 dev eth0`,
  }),
  sbr("a table that a rule names", result(ipV4), {
    before: `${withV4}; ip -n c1 rule add from 10.99.0.1 lookup 100 priority 9`,
  }),
  sbr("another interface's addresses", result({ ...ipV4, interface: 0 })),
  sbr("no addresses", result(), { steps: ["ADD c1"] }),
  sbr("no prevResult", undefined, { steps: ["ADD c1"] }),
  sbr("no such link", result(ipV4), { before: pair.replaceAll("eth0", "eth9"), steps: ["ADD c1"] }),
];

function vrf(name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  return {
    name: `vrf, ${name}`,
    plugin: "vrf",
    conf: { cniVersion: "1.0.0", name: "vrfnet", type: "vrf", vrfname: "red", prevResult: result(ipV4), ...conf },
    before: withV4,
    needs: "VRF links",
    steps: [...steps, "DEL c1"],
    ...rest,
  };
}

export const vrfs: Case[] = [
  vrf("IPv4", {}),
  vrf("IPv6 and a table", { table: 77 }, { before: withV6 }),
  vrf("a VRF that is there", {}, {
    before: `${withV4}; ip -n c1 link add red type vrf table 7; ip -n c1 link set red up`,
    steps: ["ADD c1"],
  }),
  vrf("a VRF with another table", { table: 8 }, {
    before: `${withV4}; ip -n c1 link add red type vrf table 7`,
    steps: ["ADD c1"],
  }),
  vrf("no name", { vrfname: undefined }, { steps: ["ADD c1"] }),
];
