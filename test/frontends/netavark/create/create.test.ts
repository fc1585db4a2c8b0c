/**
 * `netavark create`: what each network becomes, or the error that refuses it.
 *
 * Longer than 300 lines: a table, one entry a network.
 */
import { expect, test } from "bun:test";
import { openMachine } from "../../../support/machine.ts";
import { creation, ID } from "../../../support/netavark/creation.ts";
import { netavark } from "../../../support/netavark/netavark.ts";

/** What the network says, or the whole document. */
type Asked = object | string;

const beside = (used: Parameters<typeof creation>[1], network = {}) => creation(network, used);
const within = (options: Parameters<typeof creation>[2]) => creation({}, {}, options);
const on = (subnet: string, more = {}) => ({ subnets: [{ subnet, ...more }] });
const by = (gateway: string, subnet: string) => ({ subnets: [{ gateway, subnet }] });
const ipam = (driver: string, more = {}) => ({ ipam_options: { driver }, ...more });
const set = (options: object) => ({ options });
const range = (lease_range: object) => on("192.168.7.0/24", { lease_range });
const route = (route: object) => ({ routes: [{ destination: "192.168.9.0/24", ...route }] });

const first = { gateway: "10.89.0.1", subnet: "10.89.0.0/24" };
const onParent = { driver: "macvlan", network_interface: "parent0" };
const apple = on("192.168.7.0/24"), appleDone = by("192.168.7.1", "192.168.7.0/24");

/** A network comes back as it was asked for, in the order of these keys, with these values unless it says others. */
const common = {
  dns_enabled: true,
  driver: "bridge",
  id: ID,
  internal: false,
  ipv6_enabled: false,
  name: "orchard",
  network_interface: undefined,
  options: undefined,
  ipam_options: { driver: "host-local" },
  subnets: undefined,
  routes: undefined,
  labels: undefined,
  network_dns_servers: undefined,
};
const bridge = { ...common, network_interface: "podman1", subnets: [first] };
const byDhcp = { ...common, dns_enabled: false, ipam_options: { driver: "dhcp" } };
const onSubnet = { ...common, dns_enabled: false, ...appleDone };

/** The last column is what comes back otherwise than it was asked for. */
const made: [otherwise: object, cases: [what: string, asked: object, otherwise?: object][]][] = [
  [bridge, [
    ["nothing is said", {}],
    ["an explicit subnet", apple, appleDone],
    ["a subnet with host bits", on("192.168.7.9/24"), by("192.168.7.1", "192.168.7.9/24")],
    [
      "a gateway of one's own",
      on("192.168.7.0/24", { gateway: "192.168.7.200" }),
      by("192.168.7.200", "192.168.7.0/24"),
    ],
    ["an IPv6 subnet", on("FD12:0:0::/64"), { ipv6_enabled: true, ...by("fd12::1", "fd12::/64") }],
    ["IPv6 beside an IPv6 subnet", { ipv6_enabled: true, subnets: [{ subnet: "fd12::/64" }] }, {
      subnets: [{ gateway: "fd12::1", subnet: "fd12::/64" }, first],
    }],
    ["internal with names", { internal: true }],
    ["internal without names", { internal: true, dns_enabled: false }, on("10.89.0.0/24")],
    ["no names", { dns_enabled: false }],
    ["labels", { labels: { tree: "pear", "": "x" } }],
    ["servers", { network_dns_servers: ["9.9.9.9", "2620:FE::9"] }, {
      network_dns_servers: ["9.9.9.9", "2620:fe::9"],
    }],
    ["a lease range", range({ start_ip: "192.168.7.9" }), {
      subnets: [{ gateway: "192.168.7.1", lease_range: { start_ip: "192.168.7.9" }, subnet: "192.168.7.0/24" }],
    }],
    ["a lease range of one address", on("fd12::/64", { lease_range: { start_ip: "fd12::9", end_ip: "fd12::9" } }), {
      ipv6_enabled: true,
      subnets: [{ gateway: "fd12::1", lease_range: { end_ip: "fd12::9", start_ip: "fd12::9" }, subnet: "fd12::/64" }],
    }],
    [
      "every option",
      set({
        isolate: "strict",
        metric: "7",
        mtu: "1400",
        no_default_route: "true",
        vrf: "blue",
        mode: "managed",
        outbound_addr4: "203.0.113.4",
        outbound_addr6: "2001:db8::4",
      }),
    ],
    [
      "Docker's names of options",
      set({ "com.docker.network.driver.mtu": "1300", "com.docker.network.bridge.name": "whale0" }),
      { network_interface: "whale0", options: { mtu: "1300" } },
    ],
    [
      "a VLAN on a bridge of others",
      beside({ interfaces: ["shared0"], subnets: ["10.89.0.0/24"] }, {
        network_interface: "shared0",
        options: { vlan: "4094" },
      }),
    ],
    [
      "an unmanaged bridge of others",
      beside({ interfaces: ["shared0"] }, { network_interface: "shared0", options: { mode: "unmanaged" } }),
    ],
    ["no addresses", ipam("none"), { dns_enabled: false, subnets: undefined }],
    ["addresses by DHCP", { ipam_options: { driver: "dhcp" }, options: { mode: "unmanaged" } }, {
      subnets: undefined,
    }],
    ["an IPAM driver without a name", ipam(""), ipam("host-local")],
    ["the longest name", { network_interface: "a23456789012345" }],
    ["an interface without a name", { network_interface: "" }, { network_interface: "podman1" }],
    ["the first subnet is used", beside({ subnets: ["10.89.0.128/25"] }), by("10.89.1.1", "10.89.1.0/24")],
    ["used subnets do not matter", creation({}, { subnets: ["10.89.0.0/16"] }, { check_used_subnets: false })],
    [
      "names of interfaces, networks and links are used",
      beside({ interfaces: ["podman1"], names: { podman2: ID } }),
      { network_interface: "podman4" },
    ],
    ["a route", route({ gateway: "10.89.0.9", metric: 5 }), {
      routes: [{ gateway: "10.89.0.9", destination: "192.168.9.0/24", metric: 5 }],
    }],
    ["a route that ends", route({ destination: "fd00::/16", route_type: "prohibit" })],
    ["keys that nobody knows", { ...creation(), extra: 1, used: { ...creation().used, more: null } }],
    ["keys that are null", { options: null, subnets: null, labels: null }, {
      options: undefined,
      subnets: [first],
      labels: undefined,
    }],
  ]],
  [byDhcp, [
    ["macvlan", onParent],
    ["macvlan without a parent", { driver: "macvlan" }],
    ["macvlan with options", { ...onParent, options: { mode: "passthru", bclim: "-1", metric: "3" } }],
    ["ipvlan without addresses", ipam("none", { driver: "ipvlan" })],
  ]],
  [onSubnet, [
    ["macvlan with subnets", { ...onParent, ...apple }, appleDone],
    ["macvlan's subnets may be used", beside({ subnets: ["192.168.0.0/16"] }, { ...onParent, ...apple }), {
      ...appleDone,
      dns_enabled: false,
    }],
    ["ipvlan", { driver: "ipvlan", options: { mode: "l3s" }, ...apple }, appleDone],
  ]],
];

/** The text, or its beginning and what must be in the rest. */
const refused: [error: string, asked: Asked][] = [
  ["Network name must be supplied", { name: "" }],
  ['Invalid characters in network name "or chard": must match [a-zA-Z0-9][a-zA-Z0-9_.-]*', { name: "or chard" }],
  ['Invalid characters in network name "../x": must match [a-zA-Z0-9][a-zA-Z0-9_.-]*', { name: "../x" }],
  ['Invalid characters in network name "a\\n": must match …', { name: "a\n" }],
  ["network already exists orchard", beside({ names: { orchard: "x" } })],
  ["Network id must be supplied", { id: "" }],
  ['Network id must be a hexadecimal string "x"', { id: "x" }],
  ["bridge name b0 already in use", beside({ interfaces: ["b0"] }, { network_interface: "b0" })],
  ["bridge name b%d is invalid", { network_interface: "b%d" }],
  ["Interface name is too long: interface names must be 15 characters or less: a234567890123456", {
    network_interface: "a234567890123456",
  }],
  ["Interface name cannot be . or ..", { network_interface: ".." }],
  ['Interface name cannot contain ":": a:b', { network_interface: "a:b" }],
  ['Interface name cannot contain "/": a/b', set({ "com.docker.network.bridge.name": "a/b" })],
  [
    "Interface name is too long: interface names must be 15 characters or less: a234567890123451",
    within({ default_interface_name: "a23456789012345" }),
  ],
  ["default interface name is not set", within({ default_interface_name: undefined })],
  ["Unsupported ipam driver: cloud", ipam("cloud")],
  ["None ipam driver is set but subnets are given", { ipam_options: { driver: "none" }, ...apple }],
  ["unsupported bridge network option: colour", set({ colour: "red" })],
  ['unable to parse "mtu": invalid digit found in string…"big"', set({ mtu: "big" })],
  ['unable to parse "mtu": cannot parse integer from empty string…', set({ mtu: "" })],
  ['unable to parse "mtu": invalid digit found in string…', set({ mtu: "-1" })],
  ['unable to parse "metric": number too large to fit in target type…', set({ metric: "4294967296" })],
  ["vlan must be between 0 and 4094", set({ vlan: "4095" })],
  ['invalid isolate option "yes"…strict', set({ isolate: "yes" })],
  ['invalid bridge mode "wild"…unmanaged', set({ mode: "wild" })],
  [
    'unable to parse "no_default_route": provided string was not `true` or `false`…"1"',
    set({ no_default_route: "1" }),
  ],
  ['unable to parse "outbound_addr4": invalid IPv4 address syntax…fd00::1', set({ outbound_addr4: "fd00::1" })],
  ["cannot set NetworkDNSServers if DNS is not enabled for the network", {
    dns_enabled: false,
    network_dns_servers: ["9.9.9.9"],
  }],
  [
    "cannot set NetworkDNSServers if DNS is not enabled for the network",
    ipam("none", { network_dns_servers: ["9.9.9.9"] }),
  ],
  [
    "subnet 192.168.7.0/24 is already used on the host or by another config",
    beside({ subnets: ["192.168.7.64/26"] }, apple),
  ],
  ["duplicate subnet defined: 192.168.7.0/24", { subnets: [...apple.subnets, ...apple.subnets] }],
  ["overlapping subnets: 192.168.7.128/25 and 192.168.7.0/24", {
    subnets: [{ subnet: "192.168.7.128/25" }, ...apple.subnets],
  }],
  ["gateway 192.168.8.1 not in subnet 192.168.7.0/24", on("192.168.7.0/24", { gateway: "192.168.8.1" })],
  [
    "could not create gateway for subnet 192.168.7.2/31 because it has a 31 or greater subnet prefix",
    on("192.168.7.2/31"),
  ],
  [
    "could not create gateway for subnet fd12::1/128 because it has a 128 or greater subnet prefix",
    on("fd12::1/128"),
  ],
  ["lease range start_ip 192.168.8.1 not in subnet 192.168.7.0/24", range({ start_ip: "192.168.8.1" })],
  ["lease range end_ip fd12::1 not in subnet 192.168.7.0/24", range({ end_ip: "fd12::1" })],
  [
    "lease range start_ip 192.168.7.9 must be less than or equal to end_ip 192.168.7.8",
    range({ start_ip: "192.168.7.9", end_ip: "192.168.7.8" }),
  ],
  ['invalid start_ip: invalid IP address syntax…"low"', range({ start_ip: "low" })],
  ["route destination invalid…192.168.9.1/24", route({ destination: "192.168.9.1/24", gateway: "10.89.0.9" })],
  ["route 192.168.9.0/24 requires a gateway for type unicast", route({})],
  [
    "route 192.168.9.0/24 must not have a gateway for type unreachable",
    route({ gateway: "10.89.0.9", route_type: "unreachable" }),
  ],
  ['invalid route type "scenic"', route({ route_type: "scenic" })],
  [
    "route with ipv6 destination and ipv4 gateway (fd99::/64 via 10.89.0.9)",
    route({ destination: "fd99::/64", gateway: "10.89.0.9" }),
  ],
  ["parent interface gone0 does not exist", { ...onParent, network_interface: "gone0" }],
  ["ipam driver dhcp is not supported with ipvlan", { driver: "ipvlan" }],
  ["ipam driver dhcp is not supported with ipvlan", ipam("dhcp", { driver: "ipvlan", ...apple })],
  ["ipam driver dhcp set but subnets are set", { ...onParent, ipam_options: { driver: "dhcp" }, ...apple }],
  [
    "macvlan driver needs at least one subnet specified when the host-local ipam driver is set",
    ipam("host-local", onParent),
  ],
  ["unsupported vlan network option: vlan", { ...onParent, options: { vlan: "3" } }],
  ["unsupported ipvlan network option bclim", { driver: "ipvlan", ...apple, options: { bclim: "3" } }],
  ['invalid macvlan mode "l2"…passthru', { ...onParent, options: { mode: "l2" } }],
  ['invalid ipvlan mode "bridge"…l3s', { driver: "ipvlan", ...apple, options: { mode: "bridge" } }],
  ['plugin for driver "../../bin/sh" not found in plugin directories…/usr/libexec/netavark', {
    driver: "../../bin/sh",
  }],
  ["Failed to create network from pool 10.0.0.0/8…32", within({ subnet_pools: [{ base: "10.0.0.0/8", size: 33 }] })],
  [
    "could not find free subnet from subnet pools",
    beside({ subnets: ["10.0.0.0/9", "10.80.0.0/12", "10.89.3.0/24"] }),
  ],
  ["could not find free subnet from subnet pools", within({ subnet_pools: [] })],
  ["could not find free subnet from subnet pools", within({ subnet_pools: [{ base: "fd00::/48", size: 64 }] })],
];

/** Each after "failed to load network create: ". */
const unread: typeof refused = [
  ['"network.network_dns_servers[1]": invalid IP address syntax: "9.9.9"', {
    network_dns_servers: ["9.9.9.9", "9.9.9"],
  }],
  [
    '"network.routes[0].destination": invalid IP address syntax: "192.168.9.0"',
    route({ destination: "192.168.9.0", gateway: "10.89.0.9" }),
  ],
  ['"network.routes[0].gateway": invalid IP address syntax: "near"', route({ gateway: "near" })],
  [
    '"network.routes[0].metric" must be between 0 and 4294967295, got -1',
    route({ gateway: "10.89.0.9", metric: -1 }),
  ],
  ['"network" is missing', { used: creation().used, options: creation().options }],
  ['"network.ipv6_enabled" is missing', {
    ...creation(),
    network: { ...creation().network, ipv6_enabled: undefined },
  }],
  ['"network.internal" must be true or false, got "false"', {
    ...creation(),
    network: { ...creation().network, internal: "false" },
  }],
  ['"network.options.mtu" must be a string, got 1500', set({ mtu: 1500 })],
  [
    '"options.subnet_pools[0].base": invalid IP address syntax: "ten"',
    within({ subnet_pools: [{ base: "ten", size: 24 }] }),
  ],
  [
    '"options.subnet_pools[0].size" must be between 0 and 128, got 129',
    within({ subnet_pools: [{ base: "10.0.0.0/8", size: 129 }] }),
  ],
  ["stdin: unexpected end of JSON input", ""],
  ["the document must be an object, got []", "[]"],
  ["stdin: …", '{"network":{'],
  ["stdin: the document nests deeper than 100", `{"network":${"[".repeat(200)}${"]".repeat(200)}}`],
];

const documentOf = (asked: Asked) => typeof asked === "string" || "used" in asked ? asked : creation(asked);
const failures = [
  ...refused,
  ...unread.map(([text, asked]) => [`failed to load network create: ${text}`, asked] as const),
];

test("every network becomes what it says, or is refused by name", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add parent0 type veth peer name podman3");
  const create = async (asked: Asked) => await netavark(machine, ["create"], documentOf(asked));
  for (const [base, cases] of made) {
    for (const [what, asked, otherwise] of cases) {
      const { code, stdout, stderr, json } = await create(asked);
      const wanted = { ...base, ...("network" in asked ? asked.network as object : asked), ...otherwise };
      const answer = `${JSON.stringify({ created: json.created, ...wanted })}\n`;
      expect({ what, code, stdout, stderr }).toEqual({ what, code: 0, stdout: answer, stderr: "" });
      expect(json.created).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    }
  }
  for (const [text, asked] of failures) {
    const { code, stderr, json } = await create(asked), [begins, has] = text.split("…");
    const error = has === undefined ? text : expect.stringMatching(regExp(begins!, has));
    expect({ asked, code, stderr, json }).toEqual({ asked, code: 1, stderr: "", json: { error } });
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
    const { json } = await netavark(machine, ["create"], creation({ ipv6_enabled: true, ...apple }));
    expect(json.subnets).toHaveLength(2);
    expect(json.subnets[0]).toEqual(appleDone.subnets[0]);
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
