/** Chains of others that drop what nothing accepts, and whether they accept all that containers send. */
import { TCP, UDP } from "../../../net/ip-protocol.ts";
import { networkOf, type Prefix } from "../../../net/address.ts";
import { type KnownBytes, unknown } from "../../../net/netfilter/known-bytes.ts";
import { firstPacket, type PacketLink } from "../../../net/netfilter/packet.ts";
import type { RuleChain, Ruleset } from "../../../net/netfilter/ruleset.ts";
import { certainFate, traverse } from "../../../net/netfilter/traversal.ts";

/** What all packets of the containers have in common. */
export interface Senders {
  link: PacketLink;
  subnets: readonly Prefix[];
}

/** Answers are not looked at: there are many ways to accept them. */
export function chainsInTheWay(rules: Ruleset, { link, subnets }: Senders): RuleChain[] {
  const dropping = rules.chains.filter(({ base }) => base?.hook === "forward" && base.policy === "drop");
  return dropping.filter((chain) => {
    const alone = { ...rules, chains: rules.chains.filter((each) => each === chain || each.base === undefined) };
    return subnets.some((subnet) =>
      [TCP, UDP].some((protocol) => {
        const packet = { ...packetFrom(subnet, protocol), input: link, output: "any" as const };
        return certainFate(traverse(alone, packet, { hook: "forward" })) !== "passes";
      })
    );
  });
}

function packetFrom(subnet: Prefix, protocol: number) {
  const length = subnet.bytes.length, family = length === 4 ? 4 : 6;
  const flow = { family, source: anyIn(subnet), destination: unknown(length), protocol } as const;
  // Chains before this one may have set marks, and translated.
  const before = { mark: unknown(4), connectionMark: unknown(4), status: unknown(4) };
  return { ...firstPacket(flow, () => undefined), ...before };
}

function anyIn(subnet: Prefix): KnownBytes {
  const mask = networkOf({ bytes: new Uint8Array(subnet.bytes.length).fill(0xff), bits: subnet.bits });
  return { value: networkOf(subnet), mask };
}
