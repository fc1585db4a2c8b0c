/** Cases for both implementations of portmap, which knows a container only from prevResult. */
import type { Case } from "./cases.ts";

const ips = [{ interface: 2, address: "10.20.0.5/24" }, { interface: 2, address: "fd20::5/64" }];
const prevResult = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "br0" }, { name: "veth1" }, { name: "eth0", sandbox: "/var/run/netns/c1" }],
  ips,
  dns: { nameservers: ["10.20.0.1"] },
};

const bridge = "ip link add br0 type bridge; ip address add 10.20.0.1/24 dev br0; ip link set br0 up";

function portmap(
  name: string,
  portMappings: unknown,
  conf: Record<string, unknown> = {},
  rest: Partial<Case> = {},
): Case {
  const runtimeConfig = portMappings === undefined ? undefined : { portMappings };
  const whole = { cniVersion: "1.0.0", name: "pmnet", type: "portmap", prevResult, runtimeConfig, ...conf };
  return { name: `portmap, ${name}`, plugin: "portmap", conf: whole, before: bridge, ...rest };
}

const web = { hostPort: 8080, containerPort: 80, protocol: "tcp" };
const dns = { hostPort: 53, containerPort: 5353, protocol: "udp" };
const refused = { steps: ["ADD c1", "DEL c1"] } satisfies Partial<Case>;

export const portmaps: Case[] = [
  portmap("one port", [web]),
  portmap("three protocols", [web, dns, { hostPort: 9000, containerPort: 9000, protocol: "sctp" }]),
  portmap("twenty ports", Array.from({ length: 20 }, (_, index) => ({ ...web, hostPort: 8080 + index }))),
  portmap("addresses of the host", [
    { ...web, hostIP: "192.0.2.1" },
    { ...web, hostIP: "fd99::1" },
    { ...dns, hostIP: "0.0.0.0" },
    { ...dns, hostPort: 54, hostIP: "::" },
  ]),
  portmap("keys as containerd writes them", [{ HostPort: 8080, ContainerPort: 80, Protocol: "tcp", HostIP: "" }]),
  portmap("no mappings", []),
  portmap("no runtimeConfig", undefined),
  portmap("version 4 alone", [web], { prevResult: { ...prevResult, ips: ips.slice(0, 1) } }),
  portmap("version 6 alone", [web], { prevResult: { ...prevResult, ips: ips.slice(1) } }),
  portmap("the container's address among others", [web], {
    prevResult: {
      ...prevResult,
      ips: [{ interface: 0, address: "10.20.0.9/24" }, ...ips, { address: "10.20.0.6/24" }],
    },
  }),
  portmap("no addresses", [web], { prevResult: { ...prevResult, ips: undefined } }),
  portmap("without snat", [web], { snat: false }),
  portmap("masqAll", [web, dns], { masqAll: true }),
  portmap("another bit", [web], { markMasqBit: 31 }),
  portmap("bit 0", [web], { markMasqBit: 0 }),
  portmap("a chain of others", [web], { externalSetMarkChain: "KUBE-MARK-MASQ" }, {
    before: `${bridge}; for each in iptables ip6tables; do $each -t nat -N KUBE-MARK-MASQ; done`,
  }),
  portmap("conditions", [web], {
    conditionsV4: ["!", "-s", "192.0.2.0/24", "-i", "eth+"],
    conditionsV6: ["-d", "fd99::1/128", "-m", "mark", "!", "--mark", "0x1/0x1"],
  }),
  portmap("port 0", [{ ...web, hostPort: 0 }], {}, refused),
  portmap("a negative container port", [{ ...web, containerPort: -1 }], {}, refused),
  portmap("two marks", [web], { externalSetMarkChain: "X", markMasqBit: 5 }, refused),
  portmap("bit 32", [web], { markMasqBit: 32 }, refused),
  portmap("no prevResult", [web], { prevResult: undefined }, refused),
  portmap("ports as text", [{ ...web, hostPort: "8080" }], {}, refused),
  portmap("ADD twice, DEL without prevResult", [web], {}, {
    steps: ["ADD c1", "ADD c1", { step: "DEL c1", conf: { prevResult: undefined } }, "DEL c1"],
  }),
  portmap("CHECK after a rule went", [web], {}, {
    steps: ["ADD c1", "! iptables -t nat -F CNI-HOSTPORT-DNAT", "CHECK c1", "DEL c1"],
  }),
  portmap("CHECK after the chains went", [web], { prevResult: { ...prevResult, ips: ips.slice(0, 1) } }, {
    steps: ["ADD c1", "! iptables -t nat -F; iptables -t nat -X", "CHECK c1", "DEL c1"],
  }),
  portmap("DEL without a namespace", [web], {}, {
    steps: ["ADD c1", { step: "DEL c1", env: { CNI_NETNS: undefined } }],
  }),
];
