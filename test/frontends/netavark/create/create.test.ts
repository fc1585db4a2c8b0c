/**
 * `netavark create`: what each network becomes, or the error that refuses it.
 *
 * Longer than 300 lines: a table, one entry a network.
 */
import { expect, test } from "bun:test";
import { openMachine } from "../../../support/machine.ts";
import { creation, ID } from "../../../support/netavark/creation.ts";
import { netavark } from "../../../support/netavark/netavark.ts";

type Case = [what: string, asked: unknown, answer: object | string];

const base = { dns_enabled: true, driver: "bridge", id: ID, internal: false, ipv6_enabled: false, name: "orchard" };
const bridge = { ...base, network_interface: "podman1", ipam_options: { driver: "host-local" } };
const first = { gateway: "10.89.0.1", subnet: "10.89.0.0/24" };
const onParent = { driver: "macvlan", network_interface: "parent0" };
const apple = [{ subnet: "192.168.7.0/24" }], appleDone = [{ gateway: "192.168.7.1", subnet: "192.168.7.0/24" }];

/** Keys of answers are compared in their order, too. */
const bridges: Case[] = [
  ["nothing is said", creation(), { ...bridge, subnets: [first] }],
  ["an explicit subnet", creation({ subnets: apple }), { ...bridge, subnets: appleDone }],
  ["a subnet with host bits", creation({ subnets: [{ subnet: "192.168.7.9/24" }] }), {
    ...bridge,
    subnets: [{ gateway: "192.168.7.1", subnet: "192.168.7.9/24" }],
  }],
  ["a gateway of one's own", creation({ subnets: [{ subnet: "192.168.7.0/24", gateway: "192.168.7.200" }] }), {
    ...bridge,
    subnets: [{ gateway: "192.168.7.200", subnet: "192.168.7.0/24" }],
  }],
  ["an IPv6 subnet", creation({ subnets: [{ subnet: "FD12:0:0::/64" }] }), {
    ...bridge,
    ipv6_enabled: true,
    subnets: [{ gateway: "fd12::1", subnet: "fd12::/64" }],
  }],
  ["IPv6 beside an IPv6 subnet", creation({ ipv6_enabled: true, subnets: [{ subnet: "fd12::/64" }] }), {
    ...bridge,
    ipv6_enabled: true,
    subnets: [{ gateway: "fd12::1", subnet: "fd12::/64" }, first],
  }],
  ["internal with names", creation({ internal: true }), { ...bridge, internal: true, subnets: [first] }],
  ["internal without names", creation({ internal: true, dns_enabled: false }), {
    ...bridge,
    dns_enabled: false,
    internal: true,
    subnets: [{ subnet: "10.89.0.0/24" }],
  }],
  ["no names", creation({ dns_enabled: false }), { ...bridge, dns_enabled: false, subnets: [first] }],
  ["labels", creation({ labels: { tree: "pear", "": "x" } }), {
    ...bridge,
    subnets: [first],
    labels: { tree: "pear", "": "x" },
  }],
  ["servers", creation({ network_dns_servers: ["9.9.9.9", "2620:FE::9"] }), {
    ...bridge,
    subnets: [first],
    network_dns_servers: ["9.9.9.9", "2620:fe::9"],
  }],
  ["a lease range", creation({ subnets: [{ subnet: "192.168.7.0/24", lease_range: { start_ip: "192.168.7.9" } }] }), {
    ...bridge,
    subnets: [{ gateway: "192.168.7.1", lease_range: { start_ip: "192.168.7.9" }, subnet: "192.168.7.0/24" }],
  }],
  [
    "a lease range of one address",
    creation({ subnets: [{ subnet: "fd12::/64", lease_range: { start_ip: "fd12::9", end_ip: "fd12::9" } }] }),
    {
      ...bridge,
      ipv6_enabled: true,
      subnets: [{ gateway: "fd12::1", lease_range: { end_ip: "fd12::9", start_ip: "fd12::9" }, subnet: "fd12::/64" }],
    },
  ],
  [
    "every option",
    creation({
      options: {
        isolate: "strict",
        metric: "7",
        mtu: "1400",
        no_default_route: "true",
        vrf: "blue",
        mode: "managed",
        outbound_addr4: "203.0.113.4",
        outbound_addr6: "2001:db8::4",
      },
    }),
    {
      ...base,
      network_interface: "podman1",
      options: {
        isolate: "strict",
        metric: "7",
        mtu: "1400",
        no_default_route: "true",
        vrf: "blue",
        mode: "managed",
        outbound_addr4: "203.0.113.4",
        outbound_addr6: "2001:db8::4",
      },
      ipam_options: { driver: "host-local" },
      subnets: [first],
    },
  ],
  [
    "Docker's names of options",
    creation({
      options: { "com.docker.network.driver.mtu": "1300", "com.docker.network.bridge.name": "whale0" },
    }),
    {
      ...base,
      network_interface: "whale0",
      options: { mtu: "1300" },
      ipam_options: { driver: "host-local" },
      subnets: [first],
    },
  ],
  [
    "a VLAN on a bridge of others",
    creation({ network_interface: "shared0", options: { vlan: "4094" } }, {
      interfaces: ["shared0"],
      subnets: ["10.89.0.0/24"],
    }),
    {
      ...base,
      network_interface: "shared0",
      options: { vlan: "4094" },
      ipam_options: { driver: "host-local" },
      subnets: [first],
    },
  ],
  [
    "an unmanaged bridge of others",
    creation({ network_interface: "shared0", options: { mode: "unmanaged" } }, {
      interfaces: ["shared0"],
    }),
    {
      ...base,
      network_interface: "shared0",
      options: { mode: "unmanaged" },
      ipam_options: { driver: "host-local" },
      subnets: [first],
    },
  ],
  ["no addresses", creation({ ipam_options: { driver: "none" } }), {
    ...base,
    dns_enabled: false,
    network_interface: "podman1",
    ipam_options: { driver: "none" },
  }],
  ["addresses by DHCP", creation({ ipam_options: { driver: "dhcp" }, options: { mode: "unmanaged" } }), {
    ...base,
    network_interface: "podman1",
    options: { mode: "unmanaged" },
    ipam_options: { driver: "dhcp" },
  }],
  ["an IPAM driver without a name", creation({ ipam_options: { driver: "" } }), { ...bridge, subnets: [first] }],
  ["the longest name", creation({ network_interface: "a23456789012345" }), {
    ...bridge,
    network_interface: "a23456789012345",
    subnets: [first],
  }],
  ["an interface without a name", creation({ network_interface: "" }), { ...bridge, subnets: [first] }],
  ["the first subnet is used", creation({}, { subnets: ["10.89.0.128/25"] }), {
    ...bridge,
    subnets: [{ gateway: "10.89.1.1", subnet: "10.89.1.0/24" }],
  }],
  ["the first pool is used", creation({}, { subnets: ["10.0.0.0/9", "10.80.0.0/12", "10.89.3.0/24"] }), {
    error: "could not find free subnet from subnet pools",
  }],
  ["used subnets do not matter", creation({}, { subnets: ["10.89.0.0/16"] }, { check_used_subnets: false }), {
    ...bridge,
    subnets: [first],
  }],
  [
    "names of interfaces, networks and links are used",
    creation({}, {
      interfaces: ["podman1"],
      names: { podman2: ID },
    }),
    { ...bridge, network_interface: "podman4", subnets: [first] },
  ],
  ["a route", creation({ routes: [{ destination: "192.168.9.0/24", gateway: "10.89.0.9", metric: 5 }] }), {
    ...bridge,
    subnets: [first],
    routes: [{ gateway: "10.89.0.9", destination: "192.168.9.0/24", metric: 5 }],
  }],
  ["a route that ends", creation({ routes: [{ destination: "fd00::/16", route_type: "prohibit" }] }), {
    ...bridge,
    subnets: [first],
    routes: [{ destination: "fd00::/16", route_type: "prohibit" }],
  }],
  ["keys that nobody knows", { ...creation(), extra: 1, used: { ...creation().used, more: null } }, {
    ...bridge,
    subnets: [first],
  }],
  ["keys that are null", creation({ options: null, subnets: null, labels: null } as never), {
    ...bridge,
    subnets: [first],
  }],
];
const vlans: Case[] = [
  ["macvlan", creation({ ...onParent }), {
    ...base,
    dns_enabled: false,
    ...onParent,
    ipam_options: { driver: "dhcp" },
  }],
  ["macvlan with subnets", creation({ ...onParent, subnets: apple }), {
    ...base,
    dns_enabled: false,
    ...onParent,
    ipam_options: { driver: "host-local" },
    subnets: appleDone,
  }],
  ["macvlan without a parent", creation({ driver: "macvlan" }), {
    ...base,
    dns_enabled: false,
    driver: "macvlan",
    ipam_options: { driver: "dhcp" },
  }],
  ["macvlan with options", creation({ ...onParent, options: { mode: "passthru", bclim: "-1", metric: "3" } }), {
    ...base,
    dns_enabled: false,
    ...onParent,
    options: { mode: "passthru", bclim: "-1", metric: "3" },
    ipam_options: { driver: "dhcp" },
  }],
  ["macvlan's subnets may be used", creation({ ...onParent, subnets: apple }, { subnets: ["192.168.0.0/16"] }), {
    ...base,
    dns_enabled: false,
    ...onParent,
    ipam_options: { driver: "host-local" },
    subnets: appleDone,
  }],
  ["ipvlan", creation({ driver: "ipvlan", options: { mode: "l3s" }, subnets: apple }), {
    ...base,
    dns_enabled: false,
    driver: "ipvlan",
    options: { mode: "l3s" },
    ipam_options: { driver: "host-local" },
    subnets: appleDone,
  }],
  ["ipvlan without addresses", creation({ driver: "ipvlan", ipam_options: { driver: "none" } }), {
    ...base,
    dns_enabled: false,
    driver: "ipvlan",
    ipam_options: { driver: "none" },
  }],
];

/** The text, or its beginning and what must be in the rest. */
const refused: Case[] = [
  ["no name", creation({ name: "" }), "Network name must be supplied"],
  [
    "a bad name",
    creation({ name: "or chard" }),
    'Invalid characters in network name "or chard": must match [a-zA-Z0-9][a-zA-Z0-9_.-]*',
  ],
  [
    "a name that begins with a dot",
    creation({ name: "../x" }),
    'Invalid characters in network name "../x": must match [a-zA-Z0-9][a-zA-Z0-9_.-]*',
  ],
  [
    "a name with an end of line",
    creation({ name: "a\n" }),
    'Invalid characters in network name "a\\n": must match …',
  ],
  ["a name that is used", creation({}, { names: { orchard: "x" } }), "network already exists orchard"],
  ["no id", creation({ id: "" }), "Network id must be supplied"],
  ["an id that is not hexadecimal", creation({ id: "x" }), 'Network id must be a hexadecimal string "x"'],
  [
    "a bridge that is used",
    creation({ network_interface: "b0" }, { interfaces: ["b0"] }),
    "bridge name b0 already in use",
  ],
  ["a bad bridge name", creation({ network_interface: "b%d" }), "bridge name b%d is invalid"],
  [
    "a long interface name",
    creation({ network_interface: "a234567890123456" }),
    "Interface name is too long: interface names must be 15 characters or less: a234567890123456",
  ],
  [
    "an interface name that is a directory",
    creation({ network_interface: ".." }),
    "Interface name cannot be . or ..",
  ],
  [
    "an interface name with a colon",
    creation({ network_interface: "a:b" }),
    'Interface name cannot contain ":": a:b',
  ],
  [
    "Docker's name with a slash",
    creation({ options: { "com.docker.network.bridge.name": "a/b" } }),
    'Interface name cannot contain "/": a/b',
  ],
  [
    "a prefix that leaves no room",
    creation({}, {}, { default_interface_name: "a23456789012345" }),
    "Interface name is too long: interface names must be 15 characters or less: a234567890123451",
  ],
  ["no prefix", creation({}, {}, { default_interface_name: undefined }), "default interface name is not set"],
  ["an unknown IPAM driver", creation({ ipam_options: { driver: "cloud" } }), "Unsupported ipam driver: cloud"],
  [
    "no addresses, and subnets",
    creation({ ipam_options: { driver: "none" }, subnets: apple }),
    "None ipam driver is set but subnets are given",
  ],
  ["an unknown option", creation({ options: { colour: "red" } }), "unsupported bridge network option: colour"],
  [
    "an MTU that is none",
    creation({ options: { mtu: "big" } }),
    'unable to parse "mtu": invalid digit found in string…"big"',
  ],
  [
    "an MTU that is empty",
    creation({ options: { mtu: "" } }),
    'unable to parse "mtu": cannot parse integer from empty string…',
  ],
  [
    "an MTU below zero",
    creation({ options: { mtu: "-1" } }),
    'unable to parse "mtu": invalid digit found in string…',
  ],
  [
    "a metric beyond all",
    creation({ options: { metric: "4294967296" } }),
    'unable to parse "metric": number too large to fit in target type…',
  ],
  ["a VLAN beyond all", creation({ options: { vlan: "4095" } }), "vlan must be between 0 and 4094"],
  ["isolation of no kind", creation({ options: { isolate: "yes" } }), 'invalid isolate option "yes"…strict'],
  ["a mode of no kind", creation({ options: { mode: "wild" } }), 'invalid bridge mode "wild"…unmanaged'],
  [
    "a truth that is none",
    creation({ options: { no_default_route: "1" } }),
    'unable to parse "no_default_route": provided string was not `true` or `false`…"1"',
  ],
  [
    "an address of the other family",
    creation({ options: { outbound_addr4: "fd00::1" } }),
    'unable to parse "outbound_addr4": invalid IPv4 address syntax…fd00::1',
  ],
  [
    "servers without names",
    creation({ dns_enabled: false, network_dns_servers: ["9.9.9.9"] }),
    "cannot set NetworkDNSServers if DNS is not enabled for the network",
  ],
  [
    "servers without addresses",
    creation({ ipam_options: { driver: "none" }, network_dns_servers: ["9.9.9.9"] }),
    "cannot set NetworkDNSServers if DNS is not enabled for the network",
  ],
  [
    "a server that is no address",
    creation({ network_dns_servers: ["9.9.9.9", "9.9.9"] }),
    'failed to load network create: "network.network_dns_servers[1]": invalid IP address syntax: "9.9.9"',
  ],
  [
    "a subnet that is used",
    creation({ subnets: apple }, { subnets: ["192.168.7.64/26"] }),
    "subnet 192.168.7.0/24 is already used on the host or by another config",
  ],
  [
    "a subnet twice",
    creation({ subnets: [...apple, ...apple] }),
    "duplicate subnet defined: 192.168.7.0/24",
  ],
  [
    "a subnet in another",
    creation({ subnets: [{ subnet: "192.168.7.128/25" }, ...apple] }),
    "overlapping subnets: 192.168.7.128/25 and 192.168.7.0/24",
  ],
  [
    "a gateway elsewhere",
    creation({ subnets: [{ subnet: "192.168.7.0/24", gateway: "192.168.8.1" }] }),
    "gateway 192.168.8.1 not in subnet 192.168.7.0/24",
  ],
  [
    "a subnet without room",
    creation({ subnets: [{ subnet: "192.168.7.2/31" }] }),
    "could not create gateway for subnet 192.168.7.2/31 because it has a 31 or greater subnet prefix",
  ],
  [
    "an IPv6 subnet without room",
    creation({ subnets: [{ subnet: "fd12::1/128" }] }),
    "could not create gateway for subnet fd12::1/128 because it has a 128 or greater subnet prefix",
  ],
  [
    "a range that begins elsewhere",
    creation({ subnets: [{ subnet: "192.168.7.0/24", lease_range: { start_ip: "192.168.8.1" } }] }),
    "lease range start_ip 192.168.8.1 not in subnet 192.168.7.0/24",
  ],
  [
    "a range that ends elsewhere",
    creation({ subnets: [{ subnet: "192.168.7.0/24", lease_range: { end_ip: "fd12::1" } }] }),
    "lease range end_ip fd12::1 not in subnet 192.168.7.0/24",
  ],
  [
    "a range backwards",
    creation({
      subnets: [{ subnet: "192.168.7.0/24", lease_range: { start_ip: "192.168.7.9", end_ip: "192.168.7.8" } }],
    }),
    "lease range start_ip 192.168.7.9 must be less than or equal to end_ip 192.168.7.8",
  ],
  [
    "a range of words",
    creation({ subnets: [{ subnet: "192.168.7.0/24", lease_range: { start_ip: "low" } }] }),
    'invalid start_ip: invalid IP address syntax…"low"',
  ],
  [
    "a route to a host's address",
    creation({ routes: [{ destination: "192.168.9.1/24", gateway: "10.89.0.9" }] }),
    "route destination invalid…192.168.9.1/24",
  ],
  [
    "a route to no network",
    creation({ routes: [{ destination: "192.168.9.0", gateway: "10.89.0.9" }] }),
    'failed to load network create: "network.routes[0].destination": invalid IP address syntax: "192.168.9.0"',
  ],
  [
    "a route by no address",
    creation({ routes: [{ destination: "192.168.9.0/24", gateway: "near" }] }),
    'failed to load network create: "network.routes[0].gateway": invalid IP address syntax: "near"',
  ],
  [
    "a route by nothing",
    creation({ routes: [{ destination: "192.168.9.0/24" }] }),
    "route 192.168.9.0/24 requires a gateway for type unicast",
  ],
  [
    "a route that ends, by something",
    creation({ routes: [{ destination: "192.168.9.0/24", gateway: "10.89.0.9", route_type: "unreachable" }] }),
    "route 192.168.9.0/24 must not have a gateway for type unreachable",
  ],
  [
    "a route of no kind",
    creation({ routes: [{ destination: "192.168.9.0/24", route_type: "scenic" }] }),
    'invalid route type "scenic"',
  ],
  [
    "a route by the other family",
    creation({ routes: [{ destination: "fd99::/64", gateway: "10.89.0.9" }] }),
    "route with ipv6 destination and ipv4 gateway (fd99::/64 via 10.89.0.9)",
  ],
  [
    "a metric below zero",
    creation({ routes: [{ destination: "192.168.9.0/24", gateway: "10.89.0.9", metric: -1 }] }),
    'failed to load network create: "network.routes[0].metric" must be between 0 and 4294967295, got -1',
  ],
  [
    "a parent that is not there",
    creation({ ...onParent, network_interface: "gone0" }),
    "parent interface gone0 does not exist",
  ],
  ["ipvlan without subnets", creation({ driver: "ipvlan" }), "ipam driver dhcp is not supported with ipvlan"],
  [
    "ipvlan by DHCP",
    creation({ driver: "ipvlan", ipam_options: { driver: "dhcp" }, subnets: apple }),
    "ipam driver dhcp is not supported with ipvlan",
  ],
  [
    "macvlan by DHCP with subnets",
    creation({ ...onParent, ipam_options: { driver: "dhcp" }, subnets: apple }),
    "ipam driver dhcp set but subnets are set",
  ],
  [
    "macvlan with host-local without subnets",
    creation({ ...onParent, ipam_options: { driver: "host-local" } }),
    "macvlan driver needs at least one subnet specified when the host-local ipam driver is set",
  ],
  [
    "macvlan with an unknown option",
    creation({ ...onParent, options: { vlan: "3" } }),
    "unsupported vlan network option: vlan",
  ],
  [
    "ipvlan with bclim",
    creation({ driver: "ipvlan", subnets: apple, options: { bclim: "3" } }),
    "unsupported ipvlan network option bclim",
  ],
  [
    "macvlan in a mode of no kind",
    creation({ ...onParent, options: { mode: "l2" } }),
    'invalid macvlan mode "l2"…passthru',
  ],
  [
    "ipvlan in a mode of no kind",
    creation({ driver: "ipvlan", subnets: apple, options: { mode: "bridge" } }),
    'invalid ipvlan mode "bridge"…l3s',
  ],
  [
    "a driver that nobody has",
    creation({ driver: "../../bin/sh" }),
    'plugin for driver "../../bin/sh" not found in plugin directories…/usr/libexec/netavark',
  ],
  [
    "no network",
    { used: creation().used, options: creation().options },
    'failed to load network create: "network" is missing',
  ],
  [
    "a network without a key",
    { ...creation(), network: { ...creation().network, ipv6_enabled: undefined } },
    'failed to load network create: "network.ipv6_enabled" is missing',
  ],
  [
    "a truth that is text",
    { ...creation(), network: { ...creation().network, internal: "false" } },
    'failed to load network create: "network.internal" must be true or false, got "false"',
  ],
  [
    "an option that is a number",
    creation({ options: { mtu: 1500 } } as never),
    'failed to load network create: "network.options.mtu" must be a string, got 1500',
  ],
  [
    "a pool beyond all",
    creation({}, {}, { subnet_pools: [{ base: "10.0.0.0/8", size: 33 }] }),
    "Failed to create network from pool 10.0.0.0/8…32",
  ],
  [
    "a pool that is no network",
    creation({}, {}, { subnet_pools: [{ base: "ten", size: 24 }] }),
    'failed to load network create: "options.subnet_pools[0].base": invalid IP address syntax: "ten"',
  ],
  [
    "a pool beyond IPv6",
    creation({}, {}, { subnet_pools: [{ base: "10.0.0.0/8", size: 129 }] }),
    'failed to load network create: "options.subnet_pools[0].size" must be between 0 and 128, got 129',
  ],
  ["no pools", creation({}, {}, { subnet_pools: [] }), "could not find free subnet from subnet pools"],
  [
    "pools of the other family",
    creation({}, {}, { subnet_pools: [{ base: "fd00::/48", size: 64 }] }),
    "could not find free subnet from subnet pools",
  ],
  ["nothing", "", "failed to load network create: stdin: unexpected end of JSON input"],
  ["a list", "[]", "failed to load network create: the document must be an object, got []"],
  ["half a document", '{"network":{', "failed to load network create: stdin: …"],
  [
    "a document too deep",
    `{"network":${"[".repeat(200)}${"]".repeat(200)}}`,
    "failed to load network create: stdin: the document nests deeper than 100",
  ],
];

test("every network becomes what it says, or is refused by name", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add parent0 type veth peer name podman3");
  for (const [what, asked, wanted] of [...bridges, ...vlans, ...refused]) {
    const { code, stdout, stderr, json } = await netavark(machine, ["create"], asked);
    expect({ what, stderr }).toEqual({ what, stderr: "" });
    if (typeof wanted === "string" || "error" in wanted) {
      const text: string = typeof wanted === "string" ? wanted : String(wanted.error);
      const [begins, has = ""] = text.split("…");
      expect({ what, code, keys: Object.keys(json) }).toEqual({ what, code: 1, keys: ["error"] });
      if (text === begins) expect({ what, error: json.error }).toEqual({ what, error: text });
      else expect({ what, error: json.error }).toEqual({ what, error: expect.stringMatching(regExp(begins!, has)) });
      continue;
    }
    expect({ what, code }).toEqual({ what, code: 0 });
    expect({ what, stdout }).toEqual({ what, stdout: `${JSON.stringify({ created: json.created, ...wanted })}\n` });
    expect(json.created).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
  }
});

function regExp(begins: string, has: string): RegExp {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped(begins)}.*${escaped(has)}`);
}

test("a network with IPv6 that names no subnet of it gets one of its own", async () => {
  await using machine = await openMachine();
  const seen = new Set<string>();
  for (let index = 0; index < 3; index++) {
    const { json } = await netavark(machine, ["create"], creation({ ipv6_enabled: true, subnets: apple }));
    expect(json.subnets).toHaveLength(2);
    expect(json.subnets[0]).toEqual(appleDone[0]);
    expect(json.subnets[1].subnet).toMatch(/^fd[0-9a-f]{2}(:[0-9a-f]{1,4}){0,3}::\/64$/);
    expect(json.subnets[1].gateway).toBe(json.subnets[1].subnet.replace("/64", "1"));
    seen.add(json.subnets[1].subnet);
  }
  expect(seen.size).toBe(3);
});

test("the network may be in a file, and stdin stays unread", async () => {
  await using machine = await openMachine();
  await machine.sh(`cat >/run/asked.json`, { stdin: JSON.stringify(creation()) });
  const { code, json } = await netavark(machine, ["--file", "/run/asked.json", "create"], "not JSON");
  expect([code, json.network_interface]).toEqual([0, "podman1"]);
  expect((await netavark(machine, ["-f/run/none", "create"])).json).toEqual({
    error: "failed to load network create: IO error: No such file or directory (os error 2)",
  });
});
