/** Where the service is that holds the leases of a network. */
import { ask, NoAnswer, NoService } from "../../../services/dhcp/ask.ts";
import { Journal } from "../../../services/dhcp/journal/journal.ts";
import {
  DEFAULT_DIRECTORY,
  DEFAULT_SOCKET,
  PODMANS_SOCKET,
  type ServiceRequest,
} from "../../../services/dhcp/service-protocol.ts";
import type { DhcpConf } from "./dhcp.schema.ts";

export function directoryOf({ ipam }: DhcpConf): string {
  return ipam?.dataDir || DEFAULT_DIRECTORY;
}

/**
 * Podman's units start the same service elsewhere (src/frontends/netavark/program/dhcp-proxy.ts). It has the default directory, and
 * it is asked where nobody answers at the usual place. Throws NoService or Failed.
 */
export function askService(
  conf: DhcpConf,
  request: ServiceRequest,
  patienceMs: number,
  netns?: number,
): ReturnType<typeof ask> {
  const own = conf.ipam?.daemonSocketPath;
  try {
    return ask(own || DEFAULT_SOCKET, request, patienceMs, netns);
  } catch (error) {
    const isElsewhere = Boolean(own) || directoryOf(conf) !== DEFAULT_DIRECTORY;
    if (isElsewhere || !mayBePodmans(error, request)) throw error;
    try {
      return ask(PODMANS_SOCKET, request, patienceMs, netns);
    } catch (other) {
      // Somebody else's service there is none of ours.
      throw other instanceof NoService || other instanceof NoAnswer ? error : other;
    }
  }
}

/** Connecting starts podman's unit. Without a lease to acquire or to release, only one that runs is asked. */
function mayBePodmans(error: unknown, request: ServiceRequest): boolean {
  const isNeeded = request.do === "acquire" || request.do === "release";
  if (error instanceof NoService && isNeeded) return true;
  // The unit cni-dhcp.service ends at once while podman's has the leases.
  const isUnserved = error instanceof NoService || error instanceof NoAnswer;
  return isUnserved && Journal.isHeld(DEFAULT_DIRECTORY);
}
