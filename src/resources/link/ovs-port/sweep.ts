/** GC of ports: their rows outlive ledgers, processes and reboots. */
import { withDatabase } from "./database.ts";
import { portsOfNetwork, removePorts } from "./owned-ports.ts";

/** Removes the network's ports whose attachment is not valid, and those of an earlier boot, whose links are gone. */
export function sweepPorts(
  server: string,
  network: string,
  isValid: (owner: { containerId: string; ifName?: string }) => boolean,
): void {
  withDatabase(server, (database) => {
    const ports = portsOfNetwork(database, network);
    removePorts(database, ports.filter(({ isStale, owner }) => isStale || !isValid(owner)));
  });
}
