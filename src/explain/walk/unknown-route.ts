/** Where routing rules of others ask for what is not known of a packet, nobody can say which way it takes. */
import { isKnown } from "../../net/netfilter/known-bytes.ts";
import { nameWithPorts } from "../../net/ip-protocol.ts";
import { endsOf, type Move, stopped, type Traveller } from "./traveller.ts";

/** Undefined where the kernel can be asked. */
export function unknownRoute(traveller: Traveller): Move[] | undefined {
  const { netns, packet } = traveller, rules = netns.routingRules(packet.family);
  const isMark = rules?.asksMark === true && !isKnown(packet.mark);
  const isPort = rules?.asksSourcePort === true && nameWithPorts(packet.protocol) !== undefined &&
    !isKnown(endsOf(packet).sourcePort);
  if (!isMark && !isPort) return undefined;
  const text = `routing rules ask for the ${isMark ? "mark" : "source port"} of the packet, which is not known`;
  const mend = [{ advice: "'ip rule' lists them" }];
  return stopped(traveller, { code: "undecided", what: "route", text, mend }, "unknown");
}
