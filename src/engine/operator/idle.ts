/** What of an attachment has no effect, although it is as ADD made it. */
import type { Host } from "../../contract/host.ts";
import type { PortClaim } from "../../contract/host-ports.ts";
import type { Owner } from "../../contract/owner.ts";
import type { ResourceKind } from "../../contract/resource.ts";
import type { IdlePorts } from "../../resources/host-ports/rivals.ts";
import { parseAddress } from "../../net/address.ts";
import { loadKind } from "../../resources/table.ts";
import { listLedgersOf } from "../ledger/ledger.ts";
import { openSession } from "../run.ts";
import { recordedInvocation } from "./known-attachment.ts";

// It knows the rules of every program that maps ports, and few attachments have a port.
const rivals = () =>
  require("../../resources/host-ports/rivals.ts") as typeof import("../../resources/host-ports/rivals.ts");

/**
 * CHECK does not ask, because the reference plugin's succeeds. `mayHaveMore`: the container may get addresses that the
 * specification does not have.
 */
export function idlePorts(
  kind: ResourceKind<unknown, unknown> | undefined,
  spec: unknown,
  host: Host,
  mayHaveMore = false,
): IdlePorts {
  const claimant = kind?.claimedPorts?.(spec);
  if (claimant === undefined) return { here: [], elsewhere: [] };
  const { here, elsewhere } = rivals().idleBecauseOfRivals(claimant, host);
  return { here: [...rivals().unreachedPorts(claimant, mayHaveMore), ...here], elsewhere };
}

/** What has no effect of this resource, and of others and of the host's own programs because of it. */
export function idleLines(
  kind: ResourceKind<unknown, unknown> | undefined,
  spec: unknown,
  host: Host,
  mayHaveMore = false,
): string[] {
  const claimant = kind?.claimedPorts?.(spec);
  if (claimant === undefined) return [];
  const { here, elsewhere } = idlePorts(kind, spec, host, mayHaveMore);
  // podman holds the ports of its containers itself: it would be named.
  const listeners = claimant.way === "netavark" ? [] : rivals().hostListeners(claimant.claims);
  const next = "take another port, or stop that program";
  return [...here, ...elsewhere, ...listeners.map((line) => `${line}; ${next}`)];
}

/** Programs of this host that listen at these ports, one line for each: entries of the capability portMappings. */
export function programsAt(ports: readonly { hostPort: number; protocol: string; hostIP?: string }[]): string[] {
  const claims: PortClaim[] = [];
  for (const { hostPort: port, protocol, hostIP = "" } of ports) {
    const bytes = parseAddress(hostIP), at = bytes?.some((byte) => byte !== 0) ? bytes : undefined;
    for (const family of [4, 6] as const) {
      if (bytes !== undefined && bytes.length !== (family === 4 ? 4 : 16)) continue;
      claims.push({ family, protocol: protocol as PortClaim["protocol"], port, at });
    }
  }
  return rivals().hostListeners(claims);
}

/** Which ports of the ADD that was just made have no effect. */
export function whatIsIdle(owner: Owner, pluginPath: string): string[] {
  return ofLastAdds(owner, pluginPath, idleLines).flatMap(({ lines }) => lines);
}

/** For each plugin, the ports of the attachment that have no effect. */
export function idlePortsOf(owner: Owner, pluginPath: string): { type: string; lines: string[] }[] {
  return ofLastAdds(owner, pluginPath, (kind, spec, host) => idlePorts(kind, spec, host).here);
}

/** Reads the ledgers. */
function ofLastAdds(
  owner: Owner,
  pluginPath: string,
  linesOf: (kind: ResourceKind<unknown, unknown> | undefined, spec: unknown, host: Host) => string[],
): { type: string; lines: string[] }[] {
  const session = openSession({ keepsOpen: true });
  try {
    return listLedgersOf(owner).map(({ adds, header: { plugin } }) => {
      const add = adds.at(-1)!, lines: string[] = [];
      session.withHost({ ...recordedInvocation(add, pluginPath), netnsPath: "" }, true, (host) => {
        for (const { kind, spec } of add.entries) lines.push(...linesOf(loadKind(kind), spec, host));
      });
      return { type: plugin, lines };
    });
  } finally {
    session.close();
  }
}
