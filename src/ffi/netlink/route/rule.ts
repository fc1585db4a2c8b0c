/** Policy rules: `ip rule` (linux/fib_rules.h). */
import type { Prefix } from "../../../net/address.ts";
import { ENOENT } from "../../errno.ts";
import { attrTable, binary, text, u32 } from "../attrs.ts";
import { listOf, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { eachAttribute, NLM_F_CREATE, NLM_F_EXCL, type Writer } from "../wire.ts";
import * as rtnetlink from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";

const ruleAttrs = attrTable("FRA", {
  priority: u32(rtnetlink.FRA_PRIORITY),
  source: binary(rtnetlink.FRA_SRC),
  destination: binary(rtnetlink.FRA_DST),
  inputLink: text(rtnetlink.FRA_IIFNAME),
  table: u32(rtnetlink.FRA_TABLE),
  mark: u32(rtnetlink.FRA_FWMARK),
  markMask: u32(rtnetlink.FRA_FWMASK),
});

/** struct fib_rule_hdr: family, dst length, src length, tos, table, reserved ×2, action (u8 each), flags u32. */
const HEADER_BYTES = 12;

export interface RoutingRule {
  family: number;
  source?: Prefix;
  destination?: Prefix;
  table: number;
  /** Without one, the kernel takes the priority before that of its first rule. */
  priority?: number;
  inputLink?: string;
}

function body(rule: RoutingRule) {
  return (writer: Writer) => {
    writer.u8(rule.family).u8(rule.destination?.bits ?? 0).u8(rule.source?.bits ?? 0).u8(0);
    writer.u8(0).u8(0).u8(0).u8(rtnetlink.FR_ACT_TO_TBL).u32(0);
    ruleAttrs.encode(writer, {
      priority: rule.priority,
      source: rule.source?.bytes,
      destination: rule.destination?.bytes,
      inputLink: rule.inputLink,
      table: rule.table,
    });
  };
}

/** `from SOURCE lookup TABLE`. */
export function sourceRule(source: Prefix, table: number): RoutingRule {
  return { family: familyOf(source.bytes), source, table };
}

/** `ip rule add`. Fails with EEXIST when the same rule is there. */
export function addRoutingRule(socket: NetlinkSocket, rule: RoutingRule): void {
  socket.request(requestToAdd(`RTM_NEWRULE table ${rule.table}`, body(rule)));
}

/** Adds a rule with every condition of the listed one that the bytes are of. */
export function addRuleImage(socket: NetlinkSocket, bytes: Uint8Array): void {
  socket.request(requestToAdd("RTM_NEWRULE", (writer) => void writer.raw(bytes)));
}

function requestToAdd(what: string, body: (writer: Writer) => void): NetlinkRequest {
  const flags = NLM_F_CREATE | NLM_F_EXCL;
  return { what, type: rtnetlink.RTM_NEWRULE, flags, table: ruleAttrs, fixedBytes: HEADER_BYTES, body };
}

/** `ip rule del`, of no rule that has fewer conditions. */
export function delRoutingRule(socket: NetlinkSocket, { table, bytes }: ListedRule): "deleted" | "absent" {
  const request: NetlinkRequest = {
    what: `RTM_DELRULE table ${table}`,
    type: rtnetlink.RTM_DELRULE,
    table: ruleAttrs,
    fixedBytes: HEADER_BYTES,
    body: (writer) => void writer.raw(bytes),
  };
  return tryRequest(socket, request, [ENOENT]) ? "deleted" : "absent";
}

export interface ListedRule extends RoutingRule {
  priority: number;
  /** As listed, without what the kernel only tells: whether the links that it names are there. */
  bytes: Uint8Array;
  mark?: number;
  markMask?: number;
  /** Whether it matches the source only, and only looks up the table. */
  bySourceAlone: boolean;
}

/** `ip rule show`; family 0 means both. */
export function listRoutingRules(socket: NetlinkSocket, family: number): ListedRule[] {
  return listOf(
    socket,
    {
      what: "RTM_GETRULE dump",
      type: rtnetlink.RTM_GETRULE,
      body: (writer) => void writer.u8(family).u8(0).u8(0).u8(0).u32(0).u32(0),
    },
    ({ type, payload }, rules) => {
      if (type !== rtnetlink.RTM_NEWRULE) return;
      const values = ruleAttrs.decode(payload.subarray(HEADER_BYTES));
      rules.push({
        family: payload[0]!,
        source: values.source && { bytes: values.source, bits: payload[2]! },
        destination: values.destination && { bytes: values.destination, bits: payload[1]! },
        table: values.table ?? payload[4]!,
        priority: values.priority ?? 0,
        inputLink: values.inputLink,
        mark: values.mark,
        markMask: values.markMask,
        bySourceAlone: isBySourceAlone(payload),
        bytes: withoutState(payload),
      });
    },
  );
}

/** The kernel's own by their priorities: they take the tables local, main and default for every packet. */
const TABLES_OF_KERNEL: Readonly<Record<number, number>> = { 0: 255, 32766: 254, 32767: 253 };

/** What routing rules beside the kernel's own ask packets for. */
export interface RulesOfOthers {
  asksMark: boolean;
  asksSourcePort: boolean;
}

/** Undefined where only the kernel's own are. */
export function rulesOfOthers(socket: NetlinkSocket, family: number): RulesOfOthers | undefined {
  const others = listRoutingRules(socket, family).filter((rule) => !isOfKernel(rule));
  if (others.length === 0) return undefined;
  return {
    asksMark: others.some(({ mark, markMask }) => mark !== undefined || markMask !== undefined),
    asksSourcePort: others.some(({ bytes }) => typesIn(bytes).includes(rtnetlink.FRA_SPORT_RANGE)),
  };
}

function isOfKernel({ priority, table, bytes }: ListedRule): boolean {
  return TABLES_OF_KERNEL[priority] === table && isPlain(bytes) && bytes[1] === 0 && bytes[2] === 0;
}

const OF_EVERY_RULE = [
  rtnetlink.FRA_SRC,
  rtnetlink.FRA_PRIORITY,
  rtnetlink.FRA_TABLE,
  rtnetlink.FRA_PROTOCOL,
  rtnetlink.FRA_SUPPRESS_PREFIXLEN,
];

const FIB_RULE_INVERT = 2;

function withoutState(body: Uint8Array): Uint8Array {
  const bytes = body.slice();
  bytes[8]! &= FIB_RULE_INVERT;
  return bytes;
}

function isBySourceAlone(body: Uint8Array): boolean {
  return isPlain(body) && body[2] !== 0;
}

/** Whether it asks for addresses at most, and only looks up its table. */
function isPlain(body: Uint8Array): boolean {
  return body[3] === 0 && body[7] === rtnetlink.FR_ACT_TO_TBL && (body[8]! & FIB_RULE_INVERT) === 0 &&
    typesIn(body).every((type) => OF_EVERY_RULE.includes(type));
}

function typesIn(body: Uint8Array): number[] {
  const types: number[] = [];
  eachAttribute(body.subarray(HEADER_BYTES), (type) => void types.push(type));
  return types;
}
