/**
 * The rules of podman's networks as nft lists them: what is there beside the rules that exist once, and that removing one
 * network's leaves the others'.
 */
import { expect, test } from "bun:test";
import { networkRulesKind } from "../../../src/resources/netavark/network-rules.ts";
import { publishedPortsKind } from "../../../src/resources/netavark/published-ports.ts";
import { drive } from "../../support/resources.ts";
import { listed, ofOne, once, openWithTable, orchard, stepsOf } from "../../support/netavark/rules-table.ts";

const rules = stepsOf(networkRulesKind, orchard), ports = stepsOf(publishedPortsKind, ofOne);

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

test("strict isolation, names at the usual port", async () => {
  await using machine = await openWithTable(rules);
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
  await using machine = await openWithTable(rules);
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
  await using machine = await openWithTable(rules);
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

test("in a table of netavark before 2.1, published ports come before isolation", async () => {
  await using machine = await openWithTable(rules);
  await drive(machine, [rules("apply"), ports("apply", ofOne)]);
  const before = await listed(machine), table = await machine.sh("nft -a list chain inet netavark FORWARD");
  const [, handle] = /ct mark .* handle (\d+)/.exec(table)!;
  await machine.sh(`nft delete rule inet netavark FORWARD handle ${handle}`);
  expect(await drive(machine, [rules("verify"), rules("repair"), rules("verify")])).toEqual([
    ["a rule of network 5ca1ab1e5ca1ab1e in chain FORWARD of table inet netavark is missing"],
    "repaired",
    [],
  ]);
  expect(await listed(machine)).toEqual(before);
});

test("of networks side by side, one goes with its own rules, and nothing of the other's is missing", async () => {
  await using machine = await openWithTable(rules);
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
