/** Containers in networks, as podman describes them to netavark. */
import type {
  NetworkAttachment,
  PodmanNetwork,
  PodmanPortMapping,
} from "../../../src/interop/podman-documents/netavark.schema.ts";
import type { Container, Machine } from "../machine.ts";
import type { Answer } from "../plugins.ts";
import { creation } from "./creation.ts";
import { ND } from "./names.ts";
import { netavark } from "./netavark.ts";

/** A network with the bridge `podmanN` and the subnets 10.8N.0.0/24 and fd00:N::/64. */
export function bridgeNetwork(number = 8, more: Partial<PodmanNetwork> = {}): PodmanNetwork {
  return {
    ...creation({ name: `net${number}`, id: `${number}abcdef0`.repeat(8).slice(0, 64) }).network,
    network_interface: `podman${number}`,
    ipv6_enabled: true,
    dns_enabled: false,
    subnets: [
      { subnet: `10.8${number}.0.0/24`, gateway: `10.8${number}.0.1` },
      { subnet: `fd00:${number}::/64`, gateway: `fd00:${number}::1` },
    ],
    ipam_options: { driver: "host-local" },
    ...more,
  };
}

export interface Wish {
  network: PodmanNetwork;
  attachment?: Partial<NetworkAttachment>;
}

/** The document for `setup` and `teardown`; the container has the last address part `10 + number`. */
export function containerIn(wishes: readonly Wish[], number = 1, ports: PodmanPortMapping[] = []) {
  return {
    container_id: `${number}`.padStart(2, "0").repeat(32),
    container_name: `web${number}`,
    port_mappings: ports,
    networks: wishes.map(({ network, attachment }, index) => ({
      name: network.name,
      interface_name: `eth${index}`,
      static_ips: (network.subnets ?? []).map(({ subnet }) => addressIn(subnet, number)),
      ...attachment,
    })),
    network_info: Object.fromEntries(wishes.map(({ network }) => [network.name, network])),
  };
}

function addressIn(subnet: string, number: number): string {
  return subnet.includes(":") ? subnet.replace(/\/.*/, `${10 + number}`) : subnet.replace(/0\/.*/, `${10 + number}`);
}

export function published(
  hostPort: number,
  containerPort: number,
  more: Partial<PodmanPortMapping> = {},
): PodmanPortMapping {
  return { host_port: hostPort, container_port: containerPort, range: 1, host_ip: "", protocol: "tcp", ...more };
}

/** Calls `setup` or `teardown` for the container. */
export async function attach(
  machine: Machine,
  verb: "setup" | "teardown",
  container: Pick<Container, "netnsPath">,
  input: object,
  env: Record<string, string> = {},
): Promise<Answer> {
  await machine.sh(`mkdir -p ${ND}`);
  return await netavark(machine, ["-c", ND, verb, container.netnsPath], input, { env });
}
