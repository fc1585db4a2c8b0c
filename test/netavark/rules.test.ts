/**
 * The rules of podman's networks and published ports as nft lists them: what is there beside the rules that exist once, who
 * takes over, what is missed, and that removing one network's leaves the others'.
 */
import { expect, test } from "bun:test";
import { networkRulesKind } from "../../src/resources/netavark/network-rules.ts";
import { publishedPortsKind } from "../../src/resources/netavark/published-ports.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { drive, type Step } from "../support/resources.ts";

const orchard = {
  network: "orchard",
  networkId: "5ca1ab1e5ca1ab1e",
  bridge: "podman1",
  subnets: [{ subnet: "10.8.0.0/24" }, { subnet: "fd08::/64" }],
  isInternal: false,
  isolation: "strict",
  dnsPort: 53,
  dnsServers: ["10.8.0.1", "fd08::1"],
};
const owner = { network: "orchard", containerId: "c1", ifName: "eth0" };
const [target4, target6] = [{ address: "10.8.0.9", subnet: "10.8.0.0/24" }, {
  address: "fd08::9",
  subnet: "fd08::/64",
}];
const port = { protocol: "tcp", hostPort: 8080, containerPort: 80, range: 1 };
const ofOne = { ...owner, networkId: orchard.networkId, targets: [target4, target6], ports: [port] };

const rules = (verb: Step["verb"], spec: object = orchard, isRestated = false): Step => ({
  verb,
  kind: networkRulesKind.kind,
  spec,
  isRestated,
});
const ports = (verb: Step["verb"], spec: object = ofOne, isRestated = false): Step => ({
  verb,
  kind: publishedPortsKind.kind,
  spec,
  isRestated,
});

/** `CHAIN: rule`, in the order of each chain, and at last `MAP: element`. */
async function listed(machine: Machine): Promise<string[]> {
  const lines: string[] = [], elements: string[] = [];
  let place = "";
  for (const line of (await machine.sh("nft list table inet netavark")).split("\n").map((each) => each.trim())) {
    const [, opened] = /^(?:chain|map) (\S+) \{$/.exec(line) ?? [];
    place = opened ?? place;
    if (opened !== undefined || /^(table .*|\}|)$/.test(line)) continue;
    const found = line.replace(/^elements = \{ /, "").replace(/( \}|,)$/, "").split(/, (?=tcp|udp|sctp)/);
    if (/ : .* \. [0-9]+$/.test(found[0]!)) elements.push(...found.map((each) => `${place}: ${each}`));
    else lines.push(`${place}: ${line}`);
  }
  return [...lines, ...elements.sort()];
}

const once = [
  "INPUT: type filter hook input priority filter; policy accept;",
  "FORWARD: type filter hook forward priority filter; policy accept;",
  "FORWARD: ct state invalid drop",
  "FORWARD: ct mark & 0x00001000 == 0x00001000 accept",
  "FORWARD: jump NETAVARK-ISOLATION-1",
  "POSTROUTING: type nat hook postrouting priority srcnat; policy accept;",
  "POSTROUTING: meta mark & 0x00002000 == 0x00002000 masquerade",
  "PREROUTING: type nat hook prerouting priority dstnat; policy accept;",
  "PREROUTING: fib daddr type local jump NETAVARK-HOSTPORT-DNAT",
  "OUTPUT: type nat hook output priority -100; policy accept;",
  "OUTPUT: fib daddr type local jump NETAVARK-HOSTPORT-DNAT",
  "NETAVARK-HOSTPORT-SETMARK: meta mark set meta mark | 0x00002000",
  "NETAVARK-ISOLATION-3: jump NETAVARK-ISOLATION-2",
];
const ofStrict = [
  "nv_5ca1ab1e_10_8_0_0_nm24_ports: type inet_proto . inet_service : ipv4_addr . inet_service",
  "nv_5ca1ab1e_fd08--_nm64_ports: type inet_proto . inet_service : ipv6_addr . inet_service",
  "INPUT: ip saddr 10.8.0.0/24 meta l4proto { tcp, udp } th dport 53 accept",
  "INPUT: ip6 saddr fd08::/64 meta l4proto { tcp, udp } th dport 53 accept",
  "FORWARD: ip daddr 10.8.0.0/24 ct state established,related accept",
  "FORWARD: ip saddr 10.8.0.0/24 accept",
  "FORWARD: ip6 daddr fd08::/64 ct state established,related accept",
  "FORWARD: ip6 saddr fd08::/64 accept",
  "POSTROUTING: ip saddr 10.8.0.0/24 jump nv_5ca1ab1e_10_8_0_0_nm24",
  "POSTROUTING: ip6 saddr fd08::/64 jump nv_5ca1ab1e_fd08--_nm64",
  "NETAVARK-HOSTPORT-DNAT: meta nfproto ipv4 jump nv_5ca1ab1e_10_8_0_0_nm24_dnat",
  "NETAVARK-HOSTPORT-DNAT: meta nfproto ipv6 jump nv_5ca1ab1e_fd08--_nm64_dnat",
  'NETAVARK-ISOLATION-1: iifname "podman1" oifname != "podman1" jump NETAVARK-ISOLATION-3',
  'NETAVARK-ISOLATION-2: oifname "podman1" drop',
  "nv_5ca1ab1e_10_8_0_0_nm24: ip daddr 10.8.0.0/24 accept",
  "nv_5ca1ab1e_10_8_0_0_nm24: ip daddr != 224.0.0.0/4 masquerade",
  "nv_5ca1ab1e_10_8_0_0_nm24_dnat: ip saddr 10.8.0.0/24 jump NETAVARK-HOSTPORT-SETMARK",
  "nv_5ca1ab1e_10_8_0_0_nm24_dnat: ip saddr 127.0.0.1 jump NETAVARK-HOSTPORT-SETMARK",
  "nv_5ca1ab1e_10_8_0_0_nm24_dnat: ct mark set meta mark | 0x00001000",
  "nv_5ca1ab1e_10_8_0_0_nm24_dnat: meta nfproto ipv4 dnat ip to meta l4proto . th dport map @nv_5ca1ab1e_10_8_0_0_nm24_ports",
  "nv_5ca1ab1e_fd08--_nm64: ip6 daddr fd08::/64 accept",
  "nv_5ca1ab1e_fd08--_nm64: ip6 daddr != ff00::/8 masquerade",
  "nv_5ca1ab1e_fd08--_nm64_dnat: ip6 saddr fd08::/64 jump NETAVARK-HOSTPORT-SETMARK",
  "nv_5ca1ab1e_fd08--_nm64_dnat: ct mark set meta mark | 0x00001000",
  "nv_5ca1ab1e_fd08--_nm64_dnat: meta nfproto ipv6 dnat ip6 to meta l4proto . th dport map @nv_5ca1ab1e_fd08--_nm64_ports",
];

/** A machine after one network: what exists once is left. */
async function openWithTable(): Promise<Machine> {
  const machine = await openMachine();
  expect(await drive(machine, [rules("apply"), rules("remove")])).toEqual(["applied", "removed"]);
  expect(await listed(machine)).toEqual(once);
  return machine;
}

test("strict isolation, names at the usual port", async () => {
  await using machine = await openWithTable();
  await drive(machine, [rules("apply")]);
  expect((await listed(machine)).filter((line) => !once.includes(line))).toEqual(ofStrict);
});

/** Each with what is not as above. */
const networks: [what: string, spec: object, lines: string[]][] = [
  ["isolation, outbound addresses, names at another port", {
    isolation: "normal",
    outbound4: "192.0.2.4",
    outbound6: "2001:db8::4",
    dnsPort: 1553,
  }, [
    '- NETAVARK-ISOLATION-1: iifname "podman1" oifname != "podman1" jump NETAVARK-ISOLATION-3',
    "- nv_5ca1ab1e_10_8_0_0_nm24: ip daddr != 224.0.0.0/4 masquerade",
    "- nv_5ca1ab1e_fd08--_nm64: ip6 daddr != ff00::/8 masquerade",
    "+ INPUT: ip saddr 10.8.0.0/24 meta l4proto { tcp, udp } th dport 1553 accept",
    "+ INPUT: ip6 saddr fd08::/64 meta l4proto { tcp, udp } th dport 1553 accept",
    "+ NETAVARK-HOSTPORT-DNAT: ip6 daddr fd08::1 meta l4proto { tcp, udp } th dport 53 dnat ip6 to [fd08::1]:1553",
    "+ NETAVARK-HOSTPORT-DNAT: ip daddr 10.8.0.1 meta l4proto { tcp, udp } th dport 53 dnat ip to 10.8.0.1:1553",
    '+ NETAVARK-ISOLATION-1: iifname "podman1" oifname != "podman1" jump NETAVARK-ISOLATION-2',
    "+ nv_5ca1ab1e_10_8_0_0_nm24: ip daddr != 224.0.0.0/4 snat ip to 192.0.2.4",
    "+ nv_5ca1ab1e_fd08--_nm64: ip6 daddr != ff00::/8 snat ip6 to 2001:db8::4",
  ]],
  ["no isolation, no names", { isolation: "never", dnsServers: [] }, [
    '- NETAVARK-ISOLATION-1: iifname "podman1" oifname != "podman1" jump NETAVARK-ISOLATION-3',
    '- NETAVARK-ISOLATION-2: oifname "podman1" drop',
    '+ NETAVARK-ISOLATION-3: oifname "podman1" drop',
  ]],
];

test.each(networks)("%s", async (_, more, lines) => {
  await using machine = await openWithTable();
  const spec = { ...orchard, ...more };
  expect(await drive(machine, [rules("apply", spec), rules("verify", spec)])).toEqual(["applied", []]);
  const found = (await listed(machine)).filter((line) => !once.includes(line));
  const missing = ofStrict.filter((line) => !found.includes(line));
  expect([
    ...missing.map((line) => `- ${line}`),
    ...found.filter((line) => !ofStrict.includes(line)).map((line) => `+ ${line}`),
  ]).toEqual(lines);
  expect(await drive(machine, [rules("remove", spec)])).toEqual(["removed"]);
  expect(await listed(machine)).toEqual(once);
});

test("an internal network has rules for names alone", async () => {
  await using machine = await openWithTable();
  const internal = { ...orchard, isInternal: true, dnsPort: 1553 };
  await drive(machine, [rules("apply", { ...internal, dnsServers: [] })]);
  expect(await listed(machine)).toEqual(once);
  const least = { ...orchard, isInternal: true, subnets: [{ subnet: "10.7.0.0/24" }] };
  await drive(machine, [rules("apply", least)]);
  expect(await listed(machine)).toContain("INPUT: ip saddr 10.7.0.0/24 meta l4proto { tcp, udp } th dport 53 accept");
  await drive(machine, [rules("remove", least), rules("apply", internal)]);
  expect((await listed(machine)).filter((line) => !once.includes(line))).toEqual([
    "nv_5ca1ab1e_10_8_0_0_nm24_ports: type inet_proto . inet_service : ipv4_addr . inet_service",
    "nv_5ca1ab1e_fd08--_nm64_ports: type inet_proto . inet_service : ipv6_addr . inet_service",
    "INPUT: ip saddr 10.8.0.0/24 meta l4proto { tcp, udp } th dport 53 accept",
    "INPUT: ip saddr 10.8.0.0/24 meta l4proto { tcp, udp } th dport 1553 accept",
    "INPUT: ip6 saddr fd08::/64 meta l4proto { tcp, udp } th dport 53 accept",
    "INPUT: ip6 saddr fd08::/64 meta l4proto { tcp, udp } th dport 1553 accept",
    "NETAVARK-HOSTPORT-DNAT: ip6 daddr fd08::1 meta l4proto { tcp, udp } th dport 53 dnat ip6 to [fd08::1]:1553",
    "NETAVARK-HOSTPORT-DNAT: ip daddr 10.8.0.1 meta l4proto { tcp, udp } th dport 53 dnat ip to 10.8.0.1:1553",
  ]);
});

const ID = 'comment "id: c1, if: eth0, net: orchard"';
const of4 = "nv_5ca1ab1e_10_8_0_0_nm24", of6 = "nv_5ca1ab1e_fd08--_nm64";
const kinds: [what: string, ports: object[], lines: string[]][] = [
  ["of all addresses", [port, { ...port, protocol: "udp", hostPort: 9000, range: 2 }], [
    `${of4}_ports: tcp . 8080 ${ID} : 10.8.0.9 . 80`,
    `${of4}_ports: udp . 9000 ${ID} : 10.8.0.9 . 80`,
    `${of4}_ports: udp . 9001 ${ID} : 10.8.0.9 . 81`,
    `${of6}_ports: tcp . 8080 ${ID} : fd08::9 . 80`,
    `${of6}_ports: udp . 9000 ${ID} : fd08::9 . 80`,
    `${of6}_ports: udp . 9001 ${ID} : fd08::9 . 81`,
  ]],
  ["of one address", [
    { ...port, hostIp: "192.0.2.1" },
    { ...port, protocol: "sctp", hostPort: 9000, containerPort: 90, range: 2, hostIp: "2001:db8::1" },
  ], [
    `NETAVARK-HOSTPORT-DNAT: ip daddr 192.0.2.1 tcp dport 8080 jump ${of4}_dnat ${ID}`,
    `NETAVARK-HOSTPORT-DNAT: ip6 daddr 2001:db8::1 sctp dport 9000-9001 jump ${of6}_dnat ${ID}`,
    `${of4}_dnat: ip saddr 10.8.0.0/24 ip daddr 192.0.2.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of4}_dnat: ip saddr 127.0.0.1 ip daddr 192.0.2.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of4}_dnat: ip daddr 192.0.2.1 tcp dport 8080 ct mark set meta mark | 0x00001000 dnat ip to 10.8.0.9:80 ${ID}`,
    `${of6}_dnat: ip6 saddr fd08::/64 ip6 daddr 2001:db8::1 sctp dport 9000-9001 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of6}_dnat: ip6 daddr 2001:db8::1 sctp dport 9000 ct mark set meta mark | 0x00001000 dnat ip6 to [fd08::9]:90 ${ID}`,
    `${of6}_dnat: ip6 daddr 2001:db8::1 sctp dport 9001 ct mark set meta mark | 0x00001000 dnat ip6 to [fd08::9]:91 ${ID}`,
  ]],
  ["of all addresses of one family", [
    { ...port, hostIp: "0.0.0.0" },
    { ...port, hostPort: 8081, hostIp: "::" },
  ], [
    `${of4}_ports: tcp . 8080 ${ID} : 10.8.0.9 . 80`,
    `${of6}_ports: tcp . 8081 ${ID} : fd08::9 . 80`,
  ]],
];

test.each(kinds)("published ports %s", async (_, published, lines) => {
  await using machine = await openWithTable();
  const spec = { ...ofOne, ports: published };
  await drive(machine, [rules("apply")]);
  const before = await listed(machine);
  // Twice is as once.
  const steps = [ports("apply", spec), ports("apply", spec), ports("verify", spec)];
  expect(await drive(machine, steps)).toEqual(["applied", "applied", []]);
  expect((await listed(machine)).filter((line) => !before.includes(line))).toEqual(lines);
  expect(await drive(machine, [ports("remove", spec)])).toEqual(["removed"]);
  expect(await listed(machine)).toEqual(before);
});

test("a port is its last owner's, and what is missing is told", async () => {
  await using machine = await openWithTable();
  const both = [port, { ...port, hostPort: 8081, hostIp: "192.0.2.1" }, { ...port, hostPort: 8082, hostIp: "::1" }];
  const one = { ...ofOne, ports: both }, two = { ...one, containerId: "c2", ports: [port] };
  await drive(machine, [rules("apply"), ports("apply", one), ports("apply", two)]);
  const elements = async () => (await listed(machine)).filter((line) => line.includes("tcp . 8080"));
  expect(await drive(machine, [ports("verify", two), ports("verify", one)])).toEqual([
    [],
    ["port 8080 is another's", "port 8080 is another's"],
  ]);
  const taken = await elements();
  expect(taken).toEqual([expect.stringContaining("id: c2"), expect.stringContaining("id: c2")]);
  expect(await drive(machine, [ports("remove", one)])).toEqual(["removed"]);
  expect(await elements()).toEqual(taken);
  expect(await drive(machine, [ports("remove", two), ports("verify", one)])).toEqual([
    "removed",
    ["port 8080 is missing", "port 8080 is missing", "7 rules for ports of one address are missing"],
  ]);
});

test("of networks side by side, one goes with its own rules, and nothing of the other's is missing", async () => {
  await using machine = await openWithTable();
  const other = {
    ...orchard,
    network: "garden",
    networkId: "6ca1ab1e5ca1ab1e",
    bridge: "podman10",
    subnets: [{ subnet: "10.8.1.0/24" }, { subnet: "fd08:0:0:1::/64" }],
    dnsPort: 1553,
    dnsServers: ["10.8.1.1"],
  };
  await drive(machine, [rules("apply", other)]);
  const before = await listed(machine);
  // Options may have changed since.
  for (const changed of [{ isolation: "never", outbound4: "192.0.2.4" }, { isInternal: true }, { dnsPort: 1553 }]) {
    const later = { ...orchard, ...changed };
    await drive(machine, [rules("apply"), ports("apply", ofOne)]);
    expect(await drive(machine, [ports("remove", ofOne), rules("remove", later)])).toEqual(["removed", "removed"]);
    expect(await listed(machine)).toEqual(before);
  }
  const portChanged = [rules("apply", { ...orchard, dnsPort: 1553, dnsServers: [] }), rules("remove")];
  expect(await drive(machine, portChanged)).toEqual(["applied", "removed"]);
  expect(await listed(machine)).toEqual(before);
  expect(await drive(machine, [rules("verify", other), rules("verify")])).toEqual([
    [],
    expect.arrayContaining([
      "a rule of network 5ca1ab1e5ca1ab1e in chain INPUT of table inet netavark is missing",
    ]),
  ]);
});
