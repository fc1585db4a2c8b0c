/** Translates what podman says of a container to CNI: CNI_ARGS and capability arguments. */
import { canonicalMac } from "../../net/mac.ts";
import { takesCapability } from "../../runtime/capabilities.ts";
import type { Network } from "../../runtime/conf/network.ts";
import type { AttachmentRequest } from "../../runtime/plugin-call.ts";
import type { PluginCall, PodmanPortMapping } from "../../interop/podman-documents/netavark.schema.ts";
import type { Chosen } from "./chosen-network.ts";

/** Refuses what no plugin of the network would use. */
export function attachmentRequest(netnsPath: string, call: PluginCall, chosen: Chosen): AttachmentRequest {
  refuseUnknownOptions(call);
  const { network } = chosen, portMappings = publishedPorts(call, chosen);
  const { static_ips = [], static_mac, aliases = [] } = call.network_options;
  const cniArgs: [string, string][] = [
    ["IgnoreUnknown", "1"],
    ["K8S_POD_NAMESPACE", argument("container_name", call.container_name)],
    ["K8S_POD_NAME", call.container_name],
  ];
  const capabilityArgs: Record<string, unknown> = {};
  const mac = static_mac === undefined ? undefined : macOf(static_mac);
  if (mac !== undefined) {
    if (takesCapability(network, "mac")) capabilityArgs["mac"] = mac;
    else cniArgs.push(["MAC", mac]);
  }
  if (static_ips.length > 0) {
    if (takesCapability(network, "ips")) capabilityArgs["ips"] = static_ips;
    else if (static_ips.length === 1) cniArgs.push(["IP", argument("static_ips", static_ips[0]!)]);
    else {throw new Error(
        `static_ips ${static_ips.join(", ")}: ${needsCapability(network, "ips", "several addresses")}`,
      );}
  }
  if (portMappings.length > 0) capabilityArgs["portMappings"] = portMappings;
  if (aliases.length > 0) capabilityArgs["aliases"] = { [network.name]: aliases };
  const servers = call.network.network_dns_servers ?? [];
  if (servers.length > 0) capabilityArgs["dns"] = { servers };
  const { interface_name: ifName } = call.network_options;
  return { containerId: call.container_id, netnsPath, ifName, cniArgs, capabilityArgs };
}

export function macOf(text: string): string {
  const mac = canonicalMac(text);
  if (mac === undefined) throw new Error(`static_mac "${text}" is not a MAC address`);
  return mac;
}

/** CNI_ARGS cannot quote. */
function argument(key: string, value: string): string {
  if (/[;=]/.test(value)) throw new Error(`${key} "${value}": CNI_ARGS cannot hold ";" and "="`);
  return value;
}

function refuseUnknownOptions({ network, network_options: { options = {} } }: PluginCall): void {
  const [option] = Object.keys(options);
  if (option === undefined) return;
  throw new Error(
    `option ${option}=${
      options[option]
    } of one container: network ${network.name} has options for all containers only, which are set when it is created`,
  );
}

interface PublishedPort {
  hostPort: number;
  containerPort: number;
  protocol: string;
  hostIP: string;
}

function publishedPorts(call: PluginCall, { network, options }: Chosen): PublishedPort[] {
  const { port_mappings = [] } = call, mappings = port_mappings.flatMap(portsOf);
  if (options.ignoresPorts || mappings.length === 0) return [];
  if (takesCapability(network, "portMappings")) return mappings;
  const { hostPort, containerPort, protocol } = mappings[0]!;
  throw new Error(
    `port ${hostPort}:${containerPort}/${protocol}: ${
      needsCapability(network, "portMappings", "published ports")
    }, ` +
      "or the network's option ports=ignore when another network of the container publishes them",
  );
}

/** Returns a mapping for every port of a range. */
function portsOf({ host_port, container_port, range, host_ip, protocol }: PodmanPortMapping): PublishedPort[] {
  const count = Math.max(range, 1);
  for (const first of [host_port, container_port]) {
    if (first < 1 || first + count - 1 > 65535) {
      throw new Error(`port_mappings: ${host_port}:${container_port} with range ${range} is not from 1 to 65535`);
    }
  }
  return protocol.split(",").flatMap((each) =>
    Array.from({ length: count }, (_, index) => ({
      hostPort: host_port + index,
      containerPort: container_port + index,
      protocol: each,
      hostIP: host_ip,
    }))
  );
}

function needsCapability({ name, plugins, path }: Network, capability: string, what: string): string {
  const types = plugins.map(({ type }) => type).join(", ");
  const step = capability === "portMappings"
    ? `add {"type":"portmap","capabilities":{"portMappings":true}} to ${path}`
    : `add "capabilities":{"${capability}":true} to the plugin with ipam in ${path}`;
  return `no plugin of network ${name} (${types}) takes ${what}: ${step}`;
}
