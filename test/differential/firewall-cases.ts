/** Cases for both implementations of firewall, which knows a container only from prevResult. */
import type { Case } from "./cases.ts";

const prevResult = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "br0" }, { name: "veth1" }, { name: "eth0", sandbox: "/var/run/netns/c1" }],
  ips: [{ interface: 2, address: "10.20.0.5/24" }, { interface: 2, address: "fd20::5/64" }],
  routes: [{ dst: "0.0.0.0/0", gw: "10.20.0.1" }],
  dns: { nameservers: ["10.20.0.1"] },
};

function firewall(name: string, conf: Record<string, unknown>, rest: Partial<Case> = {}): Case {
  const whole = { cniVersion: "1.0.0", name: "fwnet", type: "firewall", backend: "iptables", prevResult, ...conf };
  return { name: `firewall, ${name}`, plugin: "firewall", conf: whole, ...rest };
}

const others = "iptables -P FORWARD DROP; iptables -A FORWARD -s 192.0.2.0/24 -j ACCEPT; iptables -N DOCKER-USER";

export const firewalls: Case[] = [
  firewall("both families", {}),
  firewall("detected backend", { backend: undefined }),
  firewall("a backend that is none", { backend: "none" }),
  firewall("version 4 alone", { prevResult: { ...prevResult, ips: prevResult.ips.slice(0, 1) } }),
  firewall("version 6 alone", { prevResult: { ...prevResult, ips: prevResult.ips.slice(1) } }),
  firewall("several addresses", {
    prevResult: {
      ...prevResult,
      ips: ["10.20.0.5/24", "10.20.0.6/24", "10.21.0.5/16"].map((address) => ({ address })),
    },
  }),
  firewall("no addresses", { prevResult: { ...prevResult, ips: [] } }),
  firewall("no prevResult", { prevResult: undefined }, { steps: ["ADD c1", "DEL c1"] }),
  firewall("an admin chain", { iptablesAdminChainName: "SITE" }),
  firewall("an admin chain that is there", { iptablesAdminChainName: "SITE" }, {
    before: "iptables -N SITE; iptables -A SITE -s 192.0.2.1 -j DROP",
  }),
  firewall("beside the rules of others", {}, { before: others }),
  firewall("same-bridge", { ingressPolicy: "same-bridge" }, { before: "ip link add br0 type bridge" }),
  firewall("same-bridge without an interface", {
    ingressPolicy: "same-bridge",
    prevResult: { ...prevResult, interfaces: undefined, ips: [{ address: "10.20.0.5/24" }] },
  }, { steps: ["ADD c1", "DEL c1"] }),
  firewall("an unknown policy", { ingressPolicy: "closed" }, { steps: ["ADD c1", "DEL c1"] }),
  firewall("ADD twice, DEL without prevResult", {}, {
    steps: ["ADD c1", "ADD c1", { step: "DEL c1", conf: { prevResult: undefined } }, "DEL c1"],
  }),
  firewall("CHECK after a rule went", {}, {
    steps: ["ADD c1", "! iptables -D CNI-FORWARD -s 10.20.0.5/32 -j ACCEPT", "CHECK c1", "DEL c1"],
  }),
  firewall("CHECK after the jump went", {}, {
    steps: ["ADD c1", "! iptables -F FORWARD", "CHECK c1", "DEL c1"],
  }),
  firewall("DEL without a namespace", {}, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
  ...["0.3.1", "0.4.0"].map((cniVersion) => {
    const old = { cniVersion, interfaces: prevResult.interfaces, ips: [{ version: "4", address: "10.20.0.5/24" }] };
    return firewall(`cniVersion ${cniVersion}`, { cniVersion, prevResult: old });
  }),
];
