/** The conditions of mappings, as each backend writes them. */
import type { IptablesRule, LinkMatch } from "../../../interop/iptables/rule.ts";
import { utf8 } from "../../../ffi/libc.ts";
import {
  from,
  inputLink,
  notFrom,
  notTo,
  outputLink,
  packetMark,
  to,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import { differs, equals, hostOrder, masked } from "../../../ffi/netlink/nftables/compare.ts";
import type { Expression } from "../../../ffi/netlink/nftables/expression.ts";
import { parsePrefix } from "../../../net/address.ts";
import type { Conditions, PrefixCondition } from "./spec.ts";

const LINK_NAME_BYTES = 16;

/** For a rule of nf_tables. */
export function conditionExpressions({ source, destination, inLink, outLink, mark }: Conditions): Expression[] {
  const all: Expression[] = [];
  if (inLink !== undefined) all.push(inputLink, compareLink(inLink));
  if (outLink !== undefined) all.push(outputLink, compareLink(outLink));
  if (source !== undefined) all.push(...(source.not ? notFrom : from)(parsePrefix(source.prefix)!));
  if (destination !== undefined) all.push(...(destination.not ? notTo : to)(parsePrefix(destination.prefix)!));
  if (mark !== undefined) {
    all.push(packetMark);
    if (mark.mask >>> 0 !== 0xffffffff) all.push(masked(hostOrder(mark.mask)));
    all.push((mark.not ? differs : equals)(hostOrder(mark.value)));
  }
  return all;
}

/** A full name is compared in 16 bytes, padded with NUL; a prefix (`eth+`) in its own length. */
function compareLink({ name, not }: LinkMatch): Expression {
  const isBeginning = name.endsWith("+"), bytes = utf8(isBeginning ? name.slice(0, -1) : name);
  const value = new Uint8Array(isBeginning ? bytes.length : LINK_NAME_BYTES);
  value.set(bytes);
  return (not ? differs : equals)(value);
}

/** For a rule of iptables. */
export function conditionMatches(conditions: Conditions): Omit<IptablesRule, "target"> {
  const { source, destination, inLink, outLink, mark } = conditions;
  const match = ({ prefix, not }: PrefixCondition) => ({ prefix: parsePrefix(prefix)!, not });
  return { source: source && match(source), destination: destination && match(destination), inLink, outLink, mark };
}
