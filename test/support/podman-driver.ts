/**
 * Networks of podman whose driver is Patchbay, called as podman and netavark call a driver: podman gives addresses from
 * the network's subnets, and sends with each call what it knows of network and container.
 */
import type { StatusBlock } from "../../src/interop/podman-documents/status-block.ts";
import type { PodmanNetwork, PodmanPortMapping } from "../../src/interop/podman-documents/netavark.schema.ts";
import type { Container, Machine } from "./machine.ts";
import { creation } from "./netavark/creation.ts";
import { type Answer, answerOf, PATCHBAY } from "./plugins.ts";

export { published as port } from "./netavark/attached.ts";

export const CONFIGS = "/run/net.d";
const ID = "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9";

type Env = Record<string, string>;
const AT_HOME = { NETCONFPATH: CONFIGS };

export interface Wanted {
  /** As podman or the user has chosen them. */
  ips?: string[];
  mac?: string;
  ports?: PodmanPortMapping[];
  ifName?: string;
  containerId?: string;
  aliases?: string[];
  /** Instead of the container's. */
  netnsPath?: string;
  network?: Partial<PodmanNetwork>;
}

export async function callDriver(
  machine: Machine,
  words: readonly string[],
  document: unknown,
  env: Env = AT_HOME,
): Promise<Answer> {
  const stdin = typeof document === "string" ? document : JSON.stringify(document);
  return answerOf(await machine.run([PATCHBAY, ...words], { stdin, env }));
}

/** What podman hands to `create` for `podman network create -d patchbay --opt …`. */
export function bareNetwork(given: Partial<PodmanNetwork> = {}): PodmanNetwork {
  return creation({ name: "pod-net", id: ID, driver: "patchbay", ...given }).network;
}

export async function writeConflist(
  machine: Machine,
  list: Record<string, unknown> & { name: string },
): Promise<void> {
  const stdin = JSON.stringify({ cniVersion: "1.0.0", ...list });
  await machine.sh(`mkdir -p ${CONFIGS}; cat >${CONFIGS}/${list.name}.conflist`, { stdin });
}

export class DriverNetwork {
  private constructor(readonly machine: Machine, readonly network: PodmanNetwork, readonly env: Env) {}

  /** A network as podman keeps it after `create`: it adds the gateways of subnets that have none. */
  static async create(machine: Machine, given: Partial<PodmanNetwork>, more: Env = {}): Promise<DriverNetwork> {
    const env = { ...AT_HOME, ...more };
    const { code, stdout, stderr, json } = await callDriver(machine, ["create"], bareNetwork(given), env);
    if (code !== 0 || stderr !== "") throw new Error(`create: exit ${code}: ${stdout}${stderr}`);
    const network = json as PodmanNetwork;
    const subnets = network.subnets?.map((each) => ({ gateway: each.subnet.replace(/[^.:]*\/.*$/, "1"), ...each }));
    return new DriverNetwork(machine, { ...network, ...subnets && { subnets } }, env);
  }

  /** One whose file somebody has written by hand. */
  static written(machine: Machine, given: Partial<PodmanNetwork>, more: Env = {}): DriverNetwork {
    return new DriverNetwork(machine, bareNetwork({ dns_enabled: false, ...given }), { ...AT_HOME, ...more });
  }

  document(container: Container, wanted: Wanted = {}): Record<string, unknown> {
    return {
      container_id: wanted.containerId ?? `id-${container.name}`,
      container_name: `name-${container.name}`,
      port_mappings: wanted.ports ?? null,
      network: { ...this.network, ...wanted.network },
      network_options: {
        aliases: wanted.aliases ?? null,
        interface_name: wanted.ifName ?? "eth0",
        static_ips: wanted.ips ?? null,
        static_mac: wanted.mac ?? null,
        options: null,
      },
    };
  }

  call(verb: string, container: Container, wanted: Wanted = {}): Promise<Answer> {
    const path = wanted.netnsPath ?? container.netnsPath;
    return callDriver(this.machine, [verb, path], this.document(container, wanted), this.env);
  }

  async setup(container: Container, wanted?: Wanted): Promise<StatusBlock> {
    const { code, stdout, stderr, json } = await this.call("setup", container, wanted);
    if (code !== 0 || stderr !== "") throw new Error(`setup: exit ${code}: ${stdout}${stderr}`);
    return json;
  }

  async teardown(container: Container, wanted?: Wanted): Promise<void> {
    const { code, stdout, stderr } = await this.call("teardown", container, wanted);
    if (code !== 0 || stdout + stderr !== "") throw new Error(`teardown: exit ${code}: ${stdout}${stderr}`);
  }

  /** Bridges and base chains stay after the first container. */
  async once(container: Container, wanted?: Wanted): Promise<void> {
    await this.setup(container, wanted);
    await this.teardown(container, wanted);
  }
}
