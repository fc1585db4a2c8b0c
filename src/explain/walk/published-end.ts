/** A port that a container publishes, and that comes to somebody else: that one may pass it on, or not. */
import { formatAddress } from "../../net/address.ts";
import { nameWithPorts } from "../../net/ip-protocol.ts";
import { isAddressOf, type World } from "../facts.ts";
import type { End } from "./traveller.ts";

interface PortOfHostAsked {
  destination?: Uint8Array;
  destinationPort?: number;
  protocol: number;
}

/** Undefined where it ends where it should, or where nobody publishes it. */
export function endElsewhere(
  world: World,
  { destination, destinationPort: port, protocol }: PortOfHostAsked,
  { end }: { end: End },
): End | undefined {
  const kind = nameWithPorts(protocol);
  if (kind === undefined || destination === undefined || port === undefined || "cause" in end) return undefined;
  if (!isAddressOf(world.host, destination)) return undefined;
  const asked = formatAddress(destination), published = world.publisherOf(port, kind, asked);
  if (published === undefined || (published.at ?? asked) !== asked || end.netns === published.netns) return undefined;
  const text = `${published.netns.label} publishes it, and it comes to somebody else: ${end.text}`;
  return {
    verdict: "unknown",
    cause: { code: "port-taken", netns: world.host, what: `${kind}/${port}`, text },
  };
}
