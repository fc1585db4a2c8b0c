/** Ports of the host that are asked for, and that nobody reaches the container by. */
import type { PortClaimant, UnreachedPort } from "../../contract/host-ports.ts";
import { parseAddress } from "../../net/address.ts";
import { isLoopback6 } from "../packets/port-mappings/spec.ts";

/** One line for each run of ports. `mayHaveMore`: the container may get addresses that nobody knows yet. */
export function unreachedPorts({ unreached }: PortClaimant, mayHaveMore = false): string[] {
  const { ports = [], families = [] } = unreached ?? {};
  return runsOf(ports).flatMap(({ first, last, protocol, hostIp }) => {
    const at = hostIp === undefined ? "" : ` at ${hostIp.includes(":") ? `[${hostIp}]` : hostIp}`;
    const port = `host port ${first === last ? first : `${first}-${last}`}/${protocol}${at}`;
    if (families.length === 0 && !mayHaveMore) {
      return `${port} leads nowhere: the container has no address; the plugin that makes its interface needs "ipam"`;
    }
    const isLoopback = isLoopback6(hostIp === undefined ? undefined : parseAddress(hostIp));
    if (isLoopback) {
      return `${port} leads nowhere: Linux lets no connection to ::1 leave the host; take ${insteadOf(families)}`;
    }
    if (mayHaveMore) return [];
    const [has, lacks] = families[0] === 4 ? ["IPv4", "IPv6"] : ["IPv6", "IPv4"];
    return `${port} leads nowhere: the container has no ${lacks} address; take an ${has} address of the host, or none`;
  });
}

function insteadOf(families: readonly (4 | 6)[]): string {
  return families.length === 1 && families[0] === 6 ? "another IPv6 address of the host" : "127.0.0.1";
}

interface Run extends Omit<UnreachedPort, "port"> {
  first: number;
  last: number;
}

/** By port. */
function runsOf(ports: readonly UnreachedPort[]): Run[] {
  const open = new Map<string, Run>(), runs: Run[] = [];
  for (const { port, protocol, hostIp } of ports.toSorted((one, other) => one.port - other.port)) {
    const place = `${protocol} ${hostIp ?? ""}`, run = open.get(place);
    if (run !== undefined && run.last + 1 >= port) {
      run.last = port;
      continue;
    }
    const begun = { first: port, last: port, protocol, hostIp };
    open.set(place, begun);
    runs.push(begun);
  }
  return runs;
}
