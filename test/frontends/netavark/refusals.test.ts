/** What setup refuses, with netavark's texts; nothing is made. */
import { expect, test } from "bun:test";
import { leftSince, momentOf } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";

const network = bridgeNetwork();
const one = (more: Parameters<typeof bridgeNetwork>[1]) => containerIn([{ network: bridgeNetwork(8, more) }]);

const ofDriver = (driver: string, options = {}) =>
  bridgeNetwork(8, { driver, options, ...driver !== "bridge" && { network_interface: "parent0" } });
const NO_BRIDGE =
  "in unmanaged mode, the bridge must already exist on the host: Netlink error: No such device (os error 19)";

const refused: [what: string, input: object, error: string][] = [
  ["a network that is not described", { ...one({}), network_info: {} }, "network info for network net8 not found"],
  ["an unknown driver", one({ driver: "mystery" }), 'unknown network driver "mystery"'],
  ["a driver that leads out of the directories", one({ driver: "../../bin/true" }), "unknown network driver"],
  ["no bridge", one({ network_interface: "" }), "no bridge interface name given"],
  ["a bridge name that is a path", one({ network_interface: "../x" }), "interface name"],
  ["an id that is a path", one({ id: "../../etc/passwd" }), "network id"],
  ["an MTU that is no number", one({ options: { mtu: "wide" } }), 'unable to parse "mtu"'],
  ["an unknown isolation", one({ options: { isolate: "maybe" } }), 'invalid isolate option "maybe"'],
  ["a VLAN too high", one({ options: { vlan: "4095" } }), "vlan must be between 0 and 4094"],
  ["a VRF that is not there", one({ options: { vrf: "blue" } }), "get vrf to set up bridge interface"],
  ["an unmanaged bridge that is not there", one({ options: { mode: "unmanaged" } }), NO_BRIDGE],
  ["the same with names", one({ options: { mode: "unmanaged" }, dns_enabled: true }), NO_BRIDGE],
  [
    "the same with DHCP",
    one({ options: { mode: "unmanaged" }, ipam_options: { driver: "dhcp" }, subnets: [] }),
    NO_BRIDGE,
  ],
  // podman's tests compare the reason.
  ...["bridge", "macvlan"].flatMap((driver): typeof refused => [
    [
      `${driver}: a MAC address of zeros`,
      containerIn([{ network: ofDriver(driver), attachment: { static_mac: "00:00:00:00:00:00" } }]),
      "Netlink error: Cannot assign requested address (os error 99)",
    ],
    [
      `${driver}: an MTU that is too small`,
      containerIn([{ network: ofDriver(driver, { mtu: "67" }) }]),
      "Netlink error: Invalid argument (os error 22)",
    ],
    [
      `${driver}: a route by a gateway that nobody is near`,
      containerIn([{
        network: { ...ofDriver(driver), routes: [{ destination: "10.9.0.0/16", gateway: "192.0.2.1" }] },
      }]),
      "Netlink error: Network is unreachable (os error 101)",
    ],
  ]),
  [
    "addresses of no subnet",
    containerIn([{ network, attachment: { static_ips: ["192.0.2.9"] } }]),
    "expected 1, got 0",
  ],
  ["no addresses", containerIn([{ network, attachment: { static_ips: [] } }]), "no static ips provided"],
  [
    "a port of an address that is none",
    containerIn([{ network }], 1, [published(8080, 80, { host_ip: "abcd" })]),
    'invalid host ip "abcd" provided for port 8080',
  ],
  [
    "an unknown protocol",
    containerIn([{ network }], 1, [published(8080, 80, { protocol: "tcp,udp" })]),
    'invalid protocol "tcp,udp" provided for port 8080',
  ],
  [
    "ports past the last one",
    containerIn([{ network }], 1, [published(65530, 80, { range: 10 })]),
    "65535",
  ],
  ["a container id that is a path", { ...one({}), container_id: "../../x" }, "container"],
  [
    "two interfaces of one name",
    containerIn([{ network }, { network: bridgeNetwork(7), attachment: { interface_name: "eth0" } }]),
    "interface eth0 already exists on container namespace",
  ],
];

test("each with its reason, and nothing made", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip link set lo up", { in: container });
  await machine.sh("ip link add parent0 type veth peer name outside0; ip link set parent0 up");
  const good = containerIn([{ network }]);
  for (const verb of ["setup", "teardown"] as const) await attach(machine, verb, container, good);
  const before = await momentOf(machine);
  for (const [what, input, error] of refused) {
    const { code, json } = await attach(machine, "setup", container, input);
    expect([what, code]).toEqual([what, 1]);
    expect(Object.keys(json)).toEqual(["error"]);
    expect(json.error).toContain(error);
  }
  const nowhere = await attach(machine, "setup", { netnsPath: "/run/netns/gone" }, good);
  expect(nowhere.json.error).toMatch(/^invalid namespace path: IO error: No such file or directory/);
  expect((await attach(machine, "setup", container, good, { NETAVARK_FW: "pf" })).json.error).toContain(
    "Must provide a valid firewall backend, got pf",
  );
  expect(await leftSince(before, machine)).toEqual([]);
});
