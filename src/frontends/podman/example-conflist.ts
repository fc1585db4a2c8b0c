/** An example of a conflist that works as it is: its bridge and its subnet are unused. */
import { CURRENT_VERSION } from "../../cni/versions.ts";
import { AF_INET } from "../../ffi/socket/socket.ts";
import { hostSockets } from "../../process/kept-open.ts";
import { listLinks } from "../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../ffi/netlink/route/route.ts";
import { formatPrefix } from "../../net/address.ts";
import { listNetworkFiles } from "../../runtime/conf/directory.ts";
import { claimantsIn } from "../../runtime/overlaps.ts";
import { freeSubnet4 } from "../../interop/podman-documents/free-subnet.ts";
import type { PodmanNetwork } from "../../interop/podman-documents/netavark.schema.ts";

const POOL = { base: "10.77.0.0/16", size: 24 };
const LONGEST_BRIDGE = 13;

export function exampleConflist({ name, subnets = [] }: PodmanNetwork, directory: string): string {
  const taken = takenNow(directory);
  const ranges = (subnets.length === 0 ? [freeSubnet4([POOL], taken.subnets)] : subnets.map(({ subnet }) => subnet))
    .map((subnet) => [{ subnet }]);
  const bridge = {
    type: "bridge",
    bridge: freeBridge(name, taken.links),
    isDefaultGateway: true,
    ipMasq: true,
    capabilities: { ips: true, mac: true },
    ipam: { type: "host-local", ranges },
  };
  const portmap = { type: "portmap", capabilities: { portMappings: true } };
  return JSON.stringify({ cniVersion: CURRENT_VERSION, name, plugins: [bridge, portmap] });
}

/** The links and subnets of the host, and of the networks in the directory. */
function takenNow(directory: string): { links: string[]; subnets: string[] } {
  const claims = claimantsIn(listNetworkFiles(directory)).flatMap(({ claims }) => claims);
  const socket = hostSockets.route.take();
  try {
    const routes = listRoutes(socket, AF_INET).filter(({ dst }) => dst.bits > 0);
    return {
      links: [...listLinks(socket).map(({ name }) => name), ...claims.flatMap(({ segment }) => segment.link ?? [])],
      subnets: [...routes.map(({ dst }) => dst), ...claims.map(({ range }) => range.subnet)].map(formatPrefix),
    };
  } finally {
    hostSockets.route.giveBack(socket);
  }
}

function freeBridge(network: string, taken: readonly string[]): string {
  const begin = network.slice(0, LONGEST_BRIDGE);
  for (let number = 0; number < 100; number++) if (!taken.includes(`${begin}${number}`)) return `${begin}${number}`;
  return begin;
}
