/** What podman says of a container, as CNI_ARGS and capability arguments; and what no plugin would use is refused. */
import { expect, test } from "bun:test";
import { attachmentRequest } from "../../../src/frontends/podman/attachment-request.ts";
import type { PluginCall } from "../../../src/interop/podman-documents/netavark.schema.ts";
import { parseNetwork } from "../../../src/runtime/conf/network.ts";
import { driverNetwork, mapping } from "../../support/netavark/driver-conf.ts";

type Call = Partial<Omit<PluginCall, "network" | "network_options">> & Partial<PluginCall["network_options"]> & {
  servers?: string[];
};

/** In a network whose second plugin takes these capabilities. */
function requested(capabilities: string[], { servers, container_name = "web", port_mappings, ...more }: Call = {}) {
  const taken = Object.fromEntries(capabilities.map((name) => [name, true]));
  const plugins = [{ type: "bridge", capabilities: { mac: false } }, { type: "more", capabilities: taken }];
  const network = {
    ...parseNetwork(JSON.stringify({ name: "net", cniVersion: "1.1.0", plugins })),
    path: "/n.conflist",
  };
  const options = { conflist: "net", ignoresPorts: capabilities.includes("no ports") };
  const call = {
    container_id: "c1",
    container_name,
    port_mappings,
    network: driverNetwork({ network_dns_servers: servers }),
    network_options: { interface_name: "eth1", ...more },
  };
  return attachmentRequest("/run/netns/c1", call, { network, options });
}

const named = [["IgnoreUnknown", "1"], ["K8S_POD_NAMESPACE", "web"], ["K8S_POD_NAME", "web"]];
const mac = "0A-58-0a-07-00-05", canonical = "0a:58:0a:07:00:05";
const plain = { hostPort: 8080, containerPort: 80, protocol: "tcp", hostIP: "" };

const requests: [capabilities: string[], call: Call, capabilityArgs: object, cniArgs?: string[][]][] = [
  [[], {}, {}],
  [[], { aliases: [], servers: [], static_ips: [], port_mappings: [] }, {}],
  [["mac"], { static_mac: mac }, { mac: canonical }],
  [[], { static_mac: mac }, {}, [["MAC", canonical]]],
  [["ips"], { static_ips: ["10.7.0.5", "fd07::5"] }, { ips: ["10.7.0.5", "fd07::5"] }],
  [["mac"], { static_ips: ["10.7.0.5"] }, {}, [["IP", "10.7.0.5"]]],
  [[], { aliases: ["www"], servers: ["9.9.9.9"] }, { aliases: { net: ["www"] }, dns: { servers: ["9.9.9.9"] } }],
  [["portMappings"], { port_mappings: [mapping()] }, { portMappings: [plain] }],
  [["portMappings", "no ports"], { port_mappings: [mapping()] }, {}],
  [["no ports"], { port_mappings: [mapping()] }, {}],
  [
    ["portMappings"],
    {
      port_mappings: [
        mapping({ host_port: 1, container_port: 65534, range: 2, host_ip: "::1", protocol: "udp,tcp" }),
      ],
    },
    {
      portMappings: ["udp", "tcp"].flatMap((protocol) => [
        { hostPort: 1, containerPort: 65534, protocol, hostIP: "::1" },
        { hostPort: 2, containerPort: 65535, protocol, hostIP: "::1" },
      ]),
    },
  ],
  [["portMappings"], { port_mappings: [mapping({ host_port: 65535, container_port: 1, range: 0 })] }, {
    portMappings: [{ ...plain, hostPort: 65535, containerPort: 1 }],
  }],
];

test.each(requests)("with capabilities %j, %j", (capabilities, call, capabilityArgs, more = []) => {
  expect(requested(capabilities, call)).toEqual({
    containerId: "c1",
    netnsPath: "/run/netns/c1",
    ifName: "eth1",
    cniArgs: [...named, ...more] as [string, string][],
    capabilityArgs: capabilityArgs as Record<string, unknown>,
  });
});

const outside = (host: number, container: number, range: number) =>
  `port_mappings: ${host}:${container} with range ${range} is not from 1 to 65535`;
const none = (what: string, step: string) =>
  `no plugin of network net (bridge, more) takes ${what}: add ${step} in /n.conflist`;

const refused: [capabilities: string[], call: Call, message: string][] = [
  [[], { container_name: "a;b" }, 'container_name "a;b": CNI_ARGS cannot hold ";" and "="'],
  [[], { container_name: "a=b" }, 'container_name "a=b": CNI_ARGS cannot hold ";" and "="'],
  [[], { static_ips: ["10.7.0.5;X"] }, 'static_ips "10.7.0.5;X": CNI_ARGS cannot hold ";" and "="'],
  [["mac"], { static_mac: "0a:58" }, 'static_mac "0a:58" is not a MAC address'],
  [
    [],
    { static_ips: ["10.7.0.5", "10.7.0.6"] },
    `static_ips 10.7.0.5, 10.7.0.6: ${
      none("several addresses", '"capabilities":{"ips":true} to the plugin with ipam')
    }`,
  ],
  [
    ["ips"],
    { port_mappings: [mapping(), mapping({ host_port: 81 })] },
    "port 8080:80/tcp: no plugin of network net (bridge, more) takes published ports: " +
    'add {"type":"portmap","capabilities":{"portMappings":true}} to /n.conflist, ' +
    "or the network's option ports=ignore when another network of the container publishes them",
  ],
  [["no ports"], { port_mappings: [mapping({ host_port: 0 })] }, outside(0, 80, 1)],
  [["portMappings"], { port_mappings: [mapping({ container_port: 0 })] }, outside(8080, 0, 1)],
  [["portMappings"], { port_mappings: [mapping({ host_port: 65535, range: 2 })] }, outside(65535, 80, 2)],
  [["portMappings"], { port_mappings: [mapping({ container_port: 65534, range: 3 })] }, outside(8080, 65534, 3)],
  [
    [],
    { options: { host_interface_name: "x0" } },
    "option host_interface_name=x0 of one container: network orchard has options for all containers only, which are set when it is created",
  ],
];

test.each(refused)("with capabilities %j, %j is refused: %s", (capabilities, call, message) => {
  expect(() => requested(capabilities, call)).toThrow(new Error(message));
});
