/**
 * Rules as bytes for nf_tables, encoded as by iptables-nft 1.8.9 (test/golden/nftables/iptables-*.txt is what that program
 * sends): conditions on the packet's headers first, then matches, a counter, and the target.
 */
import {
  destinationPort,
  from,
  inputLink,
  notFrom,
  notTo,
  outputLink,
  packetMark,
  to,
  transportProtocol,
} from "../../ffi/netlink/nftables/packet-match.ts";
import { portBytes } from "../../net/port.ts";
import { differs, equals, hostOrder, masked } from "../../ffi/netlink/nftables/compare.ts";
import { accept, backToCaller, counter, drop, jump } from "../../ffi/netlink/nftables/action.ts";
import type { Expression } from "../../ffi/netlink/nftables/expression.ts";
import {
  commentMatch,
  connectionState,
  destinationPorts,
  dnatTarget,
  localDestination,
  markTarget,
  masqueradeTarget,
  sctpDestinationPort,
} from "../../ffi/netlink/nftables/extension.ts";
import { utf8 } from "../../ffi/libc.ts";
import { type Family, type IptablesRule, type LinkMatch, protocolNumbers, stateBits, type Target } from "./rule.ts";

export function ruleExpressions(rule: IptablesRule, family: Family): Expression[] {
  const { source, destination, inLink, outLink, protocol, comment, states } = rule;
  const all: Expression[] = [];
  if (inLink !== undefined) addLink(all, inputLink, inLink);
  if (outLink !== undefined) addLink(all, outputLink, outLink);
  if (protocol !== undefined) {
    all.push(transportProtocol, equals(new Uint8Array([protocolNumbers[protocol]])));
  }
  if (source !== undefined) all.push(...source.not ? notFrom(source.prefix) : from(source.prefix));
  if (destination !== undefined) all.push(...destination.not ? notTo(destination.prefix) : to(destination.prefix));
  if (comment !== undefined) all.push(commentMatch(comment));
  if (states !== undefined) {
    let bits = 0;
    for (const state of states) bits |= stateBits[state];
    all.push(connectionState(bits));
  }
  if (rule.toLocal) all.push(localDestination);
  if (rule.destinationPorts !== undefined) all.push(destinationPorts(rule.destinationPorts));
  if (rule.destinationPort !== undefined) {
    if (protocol === "sctp") all.push(sctpDestinationPort(rule.destinationPort));
    else all.push(destinationPort, equals(portBytes(rule.destinationPort)));
  }
  if (rule.mark !== undefined) {
    const { value, mask, not } = rule.mark;
    all.push(packetMark);
    if (mask >>> 0 !== 0xffffffff) all.push(masked(hostOrder(mask)));
    all.push(not ? differs(hostOrder(value)) : equals(hostOrder(value)));
  }
  all.push(counter, targetExpression(rule.target, family));
  return all;
}

/** A full name is compared with its NUL, a prefix (`eth+`) without. */
function addLink(all: Expression[], load: Expression, { name, not }: LinkMatch): void {
  all.push(load);
  const value = name.endsWith("+") ? utf8(name.slice(0, -1)) : utf8(`${name}\0`);
  if (value.length > 0) all.push(not ? differs(value) : equals(value));
}

function targetExpression(target: Target, family: Family): Expression {
  if (target === "ACCEPT") return accept;
  if (target === "DROP") return drop;
  if (target === "RETURN") return backToCaller;
  if (target === "MASQUERADE") return masqueradeTarget(family === 4 ? 4 : 16);
  if ("jump" in target) return jump(target.jump);
  if ("setMark" in target) return markTarget(target.setMark.value, target.setMark.mask);
  return dnatTarget(target.dnat.address, target.dnat.port);
}
