/**
 * What the plugins for podman's networks restate of an attachment, without a kernel, and what they refuse. stories.txt has
 * the first, and write-stories.ts writes it.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import netavarkBridge from "../../../src/plugins/netavark/netavark-bridge/netavark-bridge.ts";
import netavarkVlan from "../../../src/plugins/netavark/netavark-vlan/netavark-vlan.ts";
import { driverConf, mapping, v4, v6 } from "../../support/netavark/driver-conf.ts";
import { ToldBefore } from "../../support/told-before.ts";
import { refusal } from "../../support/story.ts";
import { stories } from "./stories.ts";

const before = new ToldBefore(join(import.meta.dir, "stories.txt"), "\n\n", "test/plugins/netavark/write-stories.ts");

test.each(stories.map(({ title, text }) => [title, text] as const))("%s", (title, text) => {
  before.compare(title, text());
});

test("nothing else is expected", () => before.expectCount(stories.length));

const bridge = netavarkBridge.name, vlan = netavarkVlan.name;
type Conf = Parameters<typeof driverConf>[0];
const judged = (type: string, conf: Conf) => refusal(type, JSON.parse(JSON.stringify(driverConf(conf))));
const ports = (more: object) => ({ port_mappings: [mapping(more)] });
const route = (more: object) => ({ network: { routes: [{ destination: "10.9.0.0/16", ...more }] } });
const onlyV4 = { network: { subnets: [v4] }, attachment: { static_ips: ["10.8.0.9"] } };

const passes: [type: string, conf: Conf][] = [
  [bridge, { options: { vlan: "4094", mtu: "0", metric: "4294967295" } }],
  [bridge, { network: { ipam_options: { driver: "host-local" }, network_interface: "a23456789012345" } }],
  [bridge, { network: { options: { mode: "unmanaged" }, ipam_options: { driver: "dhcp" } } }],
  [bridge, { network: { id: "0aF" }, ...ports({ host_ip: "::", protocol: "sctp" }) }],
  [bridge, { network: { ipam_options: { driver: "none" } }, attachment: { static_ips: undefined } }],
  [bridge, { network: { subnets: [] }, attachment: { static_ips: ["192.0.2.1"] } }],
  [bridge, { attachment: { static_ips: ["10.8.0.9"] } }],
  [vlan, { network: { driver: "macvlan", network_interface: "" } }],
  [vlan, { network: { driver: "ipvlan", ipam_options: { driver: "dhcp" } } }],
];
test.each(passes)("%s passes %j", (type, conf) => expect(judged(type, conf)).toBeUndefined());

const refused: [type: string, conf: Conf, message: string][] = [
  [bridge, { network: { network_interface: "" } }, "no bridge interface name given"],
  [bridge, { network: { network_interface: undefined } }, "no bridge interface name given"],
  [bridge, { network: { network_interface: "a/b" } }, "interface name contains / or : or whitespace characters"],
  [bridge, { network: { id: "../x" } }, 'network id "../x" must be hexadecimal'],
  [bridge, { network: { id: "" } }, 'network id "" must be hexadecimal'],
  [bridge, { attachment: { interface_name: "" } }, "no container interface name given"],
  [vlan, { network: { driver: "macvlan" }, attachment: { interface_name: "" } }, "no container interface name given"],
  [
    bridge,
    { network: { ipam_options: { driver: "dhcp" } } },
    "cannot use dhcp ipam driver without using the option mode=unmanaged",
  ],
  [bridge, { network: { ipam_options: { driver: "cloud" } } }, "unsupported ipam driver cloud"],
  [bridge, { attachment: { static_ips: [] } }, "no static ips provided"],
  [vlan, { network: { driver: "macvlan" }, attachment: { static_ips: undefined } }, "no static ips provided"],
  [
    bridge,
    { ...onlyV4, attachment: { static_ips: ["10.8.0.9", "10.7.0.9"] } },
    "not all static IPs matched a subnet: expected 2, got 1",
  ],
  [bridge, { network: { subnets: [v6, v6] } }, "duplicate subnet defined: fd08::/64"],
  [bridge, route({}), "route 10.9.0.0/16 requires a gateway for type unicast"],
  [bridge, { options: { vlan: "4095" } }, "vlan must be between 0 and 4094"],
  [
    vlan,
    { network: { driver: "ipvlan" }, options: { mode: "bridge" } },
    'invalid ipvlan mode "bridge": expected l2, l3, l3s',
  ],
  [bridge, ports({ host_ip: "abcd" }), 'invalid host ip "abcd" provided for port 8080'],
  [
    bridge,
    ports({ protocol: "icmp" }),
    'invalid protocol "icmp" provided for port 8080: expected tcp, udp, sctp',
  ],
];
test.each(refused)("%s refuses %j: %s", (type, conf, message) => expect(judged(type, conf)).toBe(message));
