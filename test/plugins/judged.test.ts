/** What plugins refuse before they make anything, at the edges: the last value that passes, and the first that does not. */
import { describe, expect, test } from "bun:test";
import { loadPlugin } from "../../src/plugins/table.ts";
import { refusal } from "../support/story.ts";

const U32 = 0xffffffff;
const web = { hostPort: 8080, containerPort: 80, protocol: "tcp" };
const ports = (...portMappings: Record<string, unknown>[]) => ({ runtimeConfig: { portMappings } });
const onBridge = (name?: string) => ({
  ingressPolicy: "same-bridge",
  prevResult: { cniVersion: "1.1.0", interfaces: name === undefined ? [] : [{ name }] },
});
const chain = (iptablesAdminChainName: string) => ({ iptablesAdminChainName });
const [two, three] = [["10.1.0.1", "fd00::1"], ["10.1.0.1", "fd00::1", "10.1.0.2"]];
const addresses = (...all: string[]) => ({ ipam: { addresses: all.map((address) => ({ address })) } });

const passes: [type: string, written: Record<string, unknown>, cniArgs?: string][] = [
  ["portmap", ports({ ...web, hostPort: 1, containerPort: 1 }, { ...web, hostPort: 65535, containerPort: 65535 })],
  ["portmap", ports(web, web, { ...web, protocol: "UDP" }, { ...web, hostIP: "10.0.0.1" })],
  ["portmap", ports({ ...web, hostIP: "10.0.0.1" }, { ...web, hostIP: "10.0.0.2", containerPort: 81 })],
  ["portmap", { markMasqBit: 0 }],
  ["portmap", { markMasqBit: 31, backend: "nftables", conditionsV4: ["ip saddr 10.0.0.1"] }],
  ["portmap", { externalSetMarkChain: "x".repeat(28), backend: "iptables", conditionsV6: ["-s", "fd00::1"] }],
  ["bandwidth", { ingressRate: 8, ingressBurst: (U32 - 1) * 8 }],
  ["bandwidth", {}],
  ["bandwidth", { ingressRate: 0, ingressBurst: 0, shapedSubnets: ["10.0.0.0/8"], unshapedSubnets: [] }],
  ["vlan", { master: "m0", ipam: { type: "x" }, vlanId: 0 }],
  ["vlan", { master: "m0", ipam: { type: "x" }, vlanId: 4094 }],
  ["vrf", { vrfname: "red", table: 0 }],
  ["vrf", { vrfname: "red", table: U32 }],
  ["sbr", { table: 1, gateways: two }],
  ["sbr", { table: U32 }],
  ["tuning", { mtu: U32, txQLen: U32, mac: "02:00:00:00:00:01", sysctl: { "net.core.somaxconn": "1" } }],
  ["firewall", { ingressPolicy: "isolated", ...chain("x".repeat(28)), firewalldZone: "home" }],
  ["firewall", onBridge("a23456789012345")],
  ["firewall", { ingressPolicy: "open", prevResult: onBridge().prevResult }],
  ["bridge", { hairpinMode: true, disableContainerInterface: true, mac: "none" }],
  ["bridge", { promiscMode: true, vlanTrunk: [{ minID: 5, maxID: 5 }, { id: 7 }] }, "MAC=02:00:00:00:00:01"],
  ["macvlan", { master: "m0", mode: "" }],
  ["macvlan", { master: "m0", mode: "private" }, "MAC=02:00:00:00:00:01"],
  ["tap", {}],
  ["ptp", { ipam: { type: "x" } }],
  ["static", addresses("10.1.0.1/24", "10.1.0.1/25", "fd00::1/64")],
];
test.each(passes.map(([type, written, cniArgs = ""]) => [type, written, cniArgs] as const))(
  "%s passes %j %s",
  (type, written, cniArgs) => expect(refusal(type, written, cniArgs)).toBeUndefined(),
);

const failed = "failed to parse config: ";
const refused: [type: string, written: Record<string, unknown>, message: string, cniArgs?: string][] = [
  ["portmap", ports({ ...web, hostPort: 0 }), `${failed}Invalid host port number: 0`],
  ["portmap", ports({ ...web, hostPort: 65536 }), `${failed}Invalid host port number: 65536`],
  ["portmap", ports({ ...web, containerPort: 0 }), `${failed}Invalid container port number: 0`],
  ["portmap", ports({ ...web, containerPort: 65536 }), `${failed}Invalid container port number: 65536`],
  ["portmap", ports({ ...web, hostPort: 0 }, { ...web, containerPort: 0 }), `${failed}Invalid host port number: 0`],
  [
    "portmap",
    ports({ ...web, protocol: "icmp" }),
    `${failed}"protocol": "icmp" is not tcp, udp or sctp (host port 8080)`,
  ],
  ["portmap", ports({ ...web, hostIP: "x" }), `${failed}"hostIP": "x" is not an IP address (host port 8080)`],
  ["portmap", ports(web, { ...web, containerPort: 81 }), `${failed}host port 8080/tcp is mapped twice`],
  [
    "portmap",
    ports(web, { ...web, hostIP: "0.0.0.0", containerPort: 81 }),
    `${failed}host port 8080/tcp is mapped twice`,
  ],
  [
    "portmap",
    ports({ ...web, hostIP: "::" }, { ...web, containerPort: 81 }),
    `${failed}host port 8080/tcp is mapped twice`,
  ],
  ["portmap", { markMasqBit: -1 }, `${failed}MasqMarkBit must be between 0 and 31`],
  ["portmap", { markMasqBit: 32 }, `${failed}MasqMarkBit must be between 0 and 31`],
  [
    "portmap",
    { markMasqBit: 0, externalSetMarkChain: "X" },
    `${failed}Cannot specify externalSetMarkChain and markMasqBit`,
  ],
  ["portmap", { externalSetMarkChain: "-x" }, `${failed}"externalSetMarkChain": "-x" is no name of a chain`],
  [
    "portmap",
    { externalSetMarkChain: "x".repeat(29) },
    `${failed}"externalSetMarkChain": "${"x".repeat(29)}" is no name of a chain`,
  ],
  ["portmap", { backend: "ipvs" }, `${failed}unrecognized backend "ipvs"`],
  [
    "portmap",
    { backend: "iptables", conditionsV4: ["ip saddr 10.0.0.1"] },
    `${failed}iptables backend was requested but configuration contains nftables-specific options [conditionsV4]`,
  ],
  [
    "portmap",
    { externalSetMarkChain: "X", conditionsV6: ["ip6 saddr fd00::1"] },
    `${failed}nftables backend was requested but configuration contains iptables-specific options [externalSetMarkChain]`,
  ],
  [
    "portmap",
    { backend: "nftables", externalSetMarkChain: "X", conditionsV6: ["-s", "fd00::1"] },
    `${failed}nftables backend was requested but configuration contains iptables-specific options ` +
    "[externalSetMarkChain conditionsV6]",
  ],
  ["bandwidth", { ingressRate: 8, ingressBurst: U32 * 8 }, "burst cannot be more than 4GB"],
  ["bandwidth", { egressRate: 7, egressBurst: 8 }, "rate and burst must be at least 8 bits"],
  ["bandwidth", { egressRate: 8, egressBurst: 7 }, "rate and burst must be at least 8 bits"],
  ["bandwidth", { egressRate: 8 }, "if rate is set, burst must also be set"],
  ["bandwidth", { ingressBurst: 8 }, "if burst is set, rate must also be set"],
  ["bandwidth", { runtimeConfig: { bandwidth: { ingressBurst: 8 } } }, "if burst is set, rate must also be set"],
  [
    "bandwidth",
    { shapedSubnets: ["10.0.0.0/8"], unshapedSubnets: ["10.1.0.0/16"] },
    "unshapedSubnets and shapedSubnets cannot be both specified, one of them should be discarded",
  ],
  ["bandwidth", { unshapedSubnets: ["x"] }, 'bad subnet "x" provided, details invalid CIDR address: x'],
  [
    "vlan",
    { ipam: { type: "x" } },
    '"master" field is required. It specifies the host interface name to create the VLAN for',
  ],
  ["vlan", { master: "m0", vlanId: -1 }, "invalid VLAN ID -1 (must be between 0 and 4095 inclusive)"],
  ["vlan", { master: "m0", vlanId: 4095 }, "invalid VLAN ID 4095 (must be between 0 and 4095 inclusive)"],
  [
    "host-device",
    { device: "d0", DPDKMode: true, useInterfaceNetwork: true },
    "useInterfaceNetwork is not supported for dpdk-bound devices",
  ],
  ["dummy", {}, "dummy interface requires an IPAM configuration"],
  ["ptp", {}, "no plugin name provided"],
  ["vrf", {}, "configuration is expected to have a valid vrf name"],
  ["vrf", { vrfname: "a234567890123456" }, '"vrfname": interface name is too long'],
  ["vrf", { vrfname: "red", table: -1 }, '"table": -1 is not a routing table'],
  ["vrf", { vrfname: "red", table: U32 + 1 }, `"table": ${U32 + 1} is not a routing table`],
  ["sbr", { table: 0 }, '"table": 0 is not a routing table'],
  ["sbr", { table: U32 + 1 }, `"table": ${U32 + 1} is not a routing table`],
  ["sbr", { gateways: three }, "gateways list cannot contain more than 2 entries (one IPv4, one IPv6)"],
  [
    "sbr",
    { gateways: ["10.1.0.1", "10.1.0.2"] },
    "gateways list contains multiple IPv4 addresses: 10.1.0.1, 10.1.0.2",
  ],
  ["sbr", { gateways: ["fd00::1", "fd00::2"] }, "gateways list contains multiple IPv6 addresses: fd00::1, fd00::2"],
  ["sbr", { gateways: ["x"] }, "invalid static gateway IP address: x"],
  ["tuning", { mtu: -1 }, '"mtu": -1 is not an MTU'],
  ["tuning", { mtu: U32 + 1 }, `"mtu": ${U32 + 1} is not an MTU`],
  ["tuning", { txQLen: -1 }, '"txQLen": -1 is not a queue length'],
  ["tuning", { txQLen: U32 + 1 }, `"txQLen": ${U32 + 1} is not a queue length`],
  ["tuning", { mac: "x" }, "invalid args x for MAC addr: address x: invalid MAC address"],
  ["tuning", { sysctl: { "kernel.hostname": "x" } }, 'invalid net sysctl key: "kernel/hostname"'],
  ["tuning", { sysctl: { net: "x" } }, 'invalid net sysctl key: "net"'],
  ["tuning", { sysctl: { "net..core": "x" } }, 'invalid net sysctl key: "net//core"'],
  ["tuning", { sysctl: { "net.core.x": "1", "net/core/x": "1" } }, "duplicated sysctl keys are not allowed"],
  ["firewall", { ingressPolicy: "closed" }, 'ingressPolicy: unknown ingress policy: "closed"'],
  ["firewall", chain("x".repeat(29)), `iptablesAdminChainName: "${"x".repeat(29)}" cannot be the name of a chain`],
  ["firewall", chain("-x"), 'iptablesAdminChainName: "-x" cannot be the name of a chain'],
  ["firewall", chain("!x"), 'iptablesAdminChainName: "!x" cannot be the name of a chain'],
  ["firewall", chain("a b"), 'iptablesAdminChainName: "a b" cannot be the name of a chain'],
  ["firewall", chain("DROP"), 'iptablesAdminChainName: "DROP" has another meaning'],
  ["firewall", { firewalldZone: "a\0b" }, 'firewalldZone: "a\\x00b" cannot be the name of a zone'],
  [
    "firewall",
    onBridge("a234567890123456"),
    'prevResult: the name of the bridge, "a234567890123456", cannot stand in a rule',
  ],
  ["firewall", onBridge("a/b"), 'prevResult: the name of the bridge, "a/b", cannot stand in a rule'],
  ["firewall", onBridge("a+"), 'prevResult: the name of the bridge, "a+", cannot stand in a rule'],
  ["firewall", onBridge(""), "got empty bridge name"],
  [
    "firewall",
    onBridge(),
    'interface needs to be set for ingress policy "same-bridge", make sure to chain "firewall" plugin with "bridge"',
  ],
  [
    "bridge",
    { hairpinMode: true, promiscMode: true },
    "cannot set hairpin mode and promiscuous mode at the same time",
  ],
  [
    "bridge",
    { disableContainerInterface: true, ipam: { type: "x" } },
    "cannot use IPAM when DisableContainerInterface flag is set",
  ],
  ["bridge", { vlanTrunk: [{ minID: 5, maxID: 4 }] }, "minID is greater than maxID in trunk parameter"],
  ["bridge", { vlanTrunk: [{ minID: 5 }] }, "minID and maxID should be configured simultaneously, maxID is missing"],
  ["bridge", { vlanTrunk: [{ maxID: 5 }] }, "minID and maxID should be configured simultaneously, minID is missing"],
  ["bridge", {}, "failed to make veth pair: address x: invalid MAC address", "MAC=x"],
  ["bridge", { args: { cni: { mac: "y" } } }, "failed to make veth pair: address y: invalid MAC address", "MAC=x"],
  ["macvlan", { master: "m0", mode: "x" }, 'unknown macvlan mode: "x"'],
  ["macvlan", { master: "m0" }, "invalid args x for MAC addr: address x: invalid MAC address", "MAC=x"],
  ["tap", { mac: "x" }, "invalid args x for MAC addr: address x: invalid MAC address"],
];
test.each(refused.map(([type, written, message, cniArgs = ""]) => [type, written, cniArgs, message] as const))(
  "%s refuses %j %s",
  (type, written, cniArgs, message) => expect(refusal(type, written, cniArgs)).toBe(message),
);

describe("what plugins say of themselves", () => {
  const conf = (type: string, written: Record<string, unknown>) => {
    const plugin = loadPlugin(type)!;
    return { plugin, conf: plugin.validate({ cniVersion: "1.1.0", name: "net", type, ...written }) };
  };

  test.each([
    ["bandwidth", {}, "bandwidth"],
    ["bandwidth", { ingressRate: 0 }, undefined],
    ["bandwidth", { runtimeConfig: { bandwidth: {} } }, undefined],
    ["portmap", {}, "portMappings"],
    ["portmap", { runtimeConfig: { portMappings: [] } }, undefined],
  ])("%s of %j lacks the capability %s", (type, written, missing) => {
    const { plugin, conf: decoded } = conf(type, written);
    expect(plugin.missingCapability!(decoded)).toBe(missing as string);
  });

  test.each([
    ["bridge", { bridge: "br5" }, { link: "br5", isRouted: false }],
    ["bridge", { bridge: "br5", isGateway: true, vlan: 7 }, { link: "br5.7", isRouted: true }],
    ["bridge", { isDefaultGateway: true }, { link: "cni0", isRouted: true }],
    ["ptp", {}, { isRouted: true }],
    ["macvlan", { master: "m0" }, { link: "m0", isRouted: false }],
    ["vlan", { master: "m0", vlanId: 7 }, { link: "m0.7", isRouted: false }],
  ])("containers of %s with %j are on %j", (type, written, segment) => {
    const { plugin, conf: decoded } = conf(type, written);
    expect(plugin.segment!(decoded)).toEqual(segment);
  });
});
