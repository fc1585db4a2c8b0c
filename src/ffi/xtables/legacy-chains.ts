/** A table of ip_tables or ip6_tables in the words of net/netfilter/ruleset.ts. */
import { NAT_AT } from "../../net/netfilter/call-order.ts";
import {
  type BaseChain,
  HOOK_NAMES,
  type HookName,
  type Operation,
  type PayloadBase,
  type Rule,
  type RuleChain,
  type Verdict,
} from "../../net/netfilter/ruleset.ts";
import { fromUtf8 } from "../libc.ts";
import type { LegacyEntry, LegacyTable } from "./legacy-tables.ts";

const PRIORITIES: Record<string, number | undefined> = { raw: -300, mangle: -150, filter: 0, security: 50 };

/** Throws for a table that no kernel is known to have, and for one that iptables would not have written. */
export function legacyChains({ family, name, hooks, entries }: LegacyTable): RuleChain[] {
  const table = { family: family === 4 ? "ip" : "ip6", table: name, isLegacy: true } as const;
  const heads = entries.slice(0, -1).flatMap((entry, index) => nameOf(entry) === XT_ERROR_TARGET ? [index] : []);
  // A jump leads to the first rule of a chain, which stands behind the chain's name.
  const chains = new Map(heads.map((head) => [entries[head + 1]!.at, chainName(entries[head]!)]));
  const rulesOf = (own: readonly LegacyEntry[]) => own.map((entry, index) => ruleOf(entry, index, family, chains));
  const bases = hooks.map(({ number, first, policy }): RuleChain => {
    const own = entries.filter(({ at }) => at >= first && at < policy);
    const last = verdictOf(entries.find(({ at }) => at === policy)!, chains);
    if (last?.kind !== "accept" && last?.kind !== "drop") {
      throw new Error(`table ${name}: hook ${number} has no policy`);
    }
    const base = baseOf(name, HOOK_NAMES[number]!, last.kind);
    return { ...table, name: base.hook.toUpperCase(), base, rules: rulesOf(own) };
  });
  return [
    ...bases,
    ...heads.map((head, index) => ({
      ...table,
      name: chainName(entries[head]!),
      rules: rulesOf(entries.slice(head + 1, heads[index + 1] ?? -1)),
    })),
  ];
}

function baseOf(table: string, hook: HookName, policy: "accept" | "drop"): BaseChain {
  const isNat = table === "nat", priority = isNat ? NAT_AT[hook as keyof typeof NAT_AT] : PRIORITIES[table];
  if (priority === undefined) {
    throw new Error(`older table ${table}: not known, so its chains' priority is not, either`);
  }
  return {
    hook,
    priority,
    policy,
    type: isNat ? "nat" : table === "mangle" && hook === "output" ? "route" : "filter",
  };
}

/** Entries are decoded when a packet comes to the rule. */
function ruleOf(entry: LegacyEntry, index: number, family: 4 | 6, chains: ReadonlyMap<number, string>): Rule {
  let decoded: Rule["operations"] | undefined;
  return {
    handle: BigInt(index + 1),
    get operations() {
      return decoded ??= [
        ...conditionsOf(entry, family),
        ...matchesOf(entry, family),
        ...targetOf(entry, family, chains),
      ];
    },
  };
}

/** struct ipt_ip begins with addresses and masks, and struct ip6t_ip6 does; interfaces, and what follows, come behind. */
const ENTRY = {
  4: { length: 4, addressesAt: 12, flagsAt: 82, inversionsAt: 83, matchesAt: 112, gotoFlag: 0x02 },
  6: { length: 16, addressesAt: 8, flagsAt: 131, inversionsAt: 132, matchesAt: 168, gotoFlag: 0x04 },
} as const;
const IFNAMSIZ = 16, IPT_F_FRAG = 0x01, IP6T_F_PROTO = 0x01;
const IPT_INV_VIA_IN = 0x01, IPT_INV_VIA_OUT = 0x02, IPT_INV_SRCIP = 0x08, IPT_INV_DSTIP = 0x10, IPT_INV_FRAG = 0x20;
const XT_INV_PROTO = 0x40, IP_OFFSET = Uint8Array.of(0x1f, 0xff), FRAGMENT_AT = 6;

function conditionsOf(entry: LegacyEntry, family: 4 | 6): Operation[] {
  const { length, addressesAt, flagsAt, inversionsAt } = ENTRY[family], { bytes } = entry;
  const flags = bytes.getUint8(flagsAt), inversions = bytes.getUint8(inversionsAt), links = 4 * length;
  const isInverted = (bit: number) => (inversions & bit) !== 0,
    part = (at: number, size: number) => bytesOf(bytes, at, size);
  const address = (index: number, bit: number) =>
    asked(inPacket("network", addressesAt + index * length, length), {
      value: part(index * length, length),
      mask: part((index + 2) * length, length),
      isInverted: isInverted(bit),
    });
  const link = (key: string, index: number, bit: number) => {
    const mask = part(links + (index + 2) * IFNAMSIZ, IFNAMSIZ), name = part(links + index * IFNAMSIZ, IFNAMSIZ);
    const value = name.map((byte, at) => byte & mask[at]!);
    return asked({ does: "meta", key, into: 0 }, { value, mask, isInverted: isInverted(bit) });
  };
  // The kernel compares 16 bits, and packets have 8.
  const protocol = part(links + 4 * IFNAMSIZ, 2), isOfAny = bytes.getUint16(links + 4 * IFNAMSIZ, true) === 0;
  const asksProtocol = !isOfAny && (family === 4 || (flags & IP6T_F_PROTO) !== 0);
  const asksFragment = family === 4 && ((flags & IPT_F_FRAG) !== 0 || isInverted(IPT_INV_FRAG));
  return [
    ...address(0, IPT_INV_SRCIP),
    ...address(1, IPT_INV_DSTIP),
    ...link("iifname", 0, IPT_INV_VIA_IN),
    ...link("oifname", 1, IPT_INV_VIA_OUT),
    ...(asksProtocol
      ? asked({ does: "meta", key: "l4proto", into: 0 }, { value: protocol, isInverted: isInverted(XT_INV_PROTO) })
      : []),
    // A fragment is not the first of its packet.
    ...(asksFragment
      ? asked(inPacket("network", FRAGMENT_AT, 2), {
        value: new Uint8Array(2),
        mask: IP_OFFSET,
        isInverted: !isInverted(IPT_INV_FRAG),
      })
      : []),
  ];
}

function inPacket(base: PayloadBase, offset: number, length: number): Operation {
  return { does: "payload", base, offset, length, into: 0 };
}

interface Asked {
  value: Uint8Array;
  mask?: Uint8Array;
  isInverted: boolean;
}

function asked(load: Operation, { value, mask, isInverted }: Asked): Operation[] {
  if (!isInverted && mask !== undefined && [...value, ...mask].every((byte) => byte === 0)) return [];
  const compare: Operation = { does: "compare", register: 0, how: isInverted ? "!=" : "==", value };
  if (mask === undefined || mask.every((byte) => byte === 0xff)) return [load, compare];
  return [load, { does: "mask", from: 0, into: 0, mask, xor: new Uint8Array(mask.length) }, compare];
}

/** struct xt_entry_match and xt_entry_target: the size of all, a name of 29 bytes, the revision, then its own struct. */
const NAME_AT = 2, XT_EXTENSION_MAXNAMELEN = 29, REVISION_AT = 31, DATA_AT = 32;

function extension(does: "match" | "target", bytes: DataView<ArrayBuffer>, at: number): Operation {
  const size = bytes.getUint16(at, true);
  return {
    does,
    name: textIn(bytes, at + NAME_AT, XT_EXTENSION_MAXNAMELEN),
    revision: bytes.getUint8(at + REVISION_AT),
    info: new DataView(bytes.buffer, bytes.byteOffset + at + DATA_AT, size - DATA_AT),
  };
}

function matchesOf({ bytes, targetAt }: LegacyEntry, family: 4 | 6): Operation[] {
  const matches: Operation[] = [];
  for (let at: number = ENTRY[family].matchesAt; at < targetAt; at += bytes.getUint16(at, true)) {
    matches.push(extension("match", bytes, at));
  }
  return matches;
}

const XT_STANDARD_TARGET = "", XT_ERROR_TARGET = "ERROR", XT_FUNCTION_MAXNAMELEN = 30;

function targetOf(entry: LegacyEntry, family: 4 | 6, chains: ReadonlyMap<number, string>): Operation[] {
  if (nameOf(entry) !== XT_STANDARD_TARGET) return [extension("target", entry.bytes, entry.targetAt)];
  const { flagsAt, gotoFlag } = ENTRY[family], verdict = verdictOf(entry, chains);
  if (verdict === undefined) return [{ does: "something", name: "verdict" }];
  if (verdict.kind !== "jump" || (entry.bytes.getUint8(flagsAt) & gotoFlag) === 0) {
    return [{ does: "verdict", verdict }];
  }
  return [{ does: "verdict", verdict: { ...verdict, kind: "goto" } }];
}

/** Negative ones are verdicts, less one; the others are where to go on. */
const VERDICTS: Record<number, Verdict["kind"] & ("accept" | "drop" | "queue" | "return") | undefined> = {
  [-1]: "drop",
  [-2]: "accept",
  [-4]: "queue",
  [-5]: "return",
};

function verdictOf(
  { at, bytes, targetAt, length }: LegacyEntry,
  chains: ReadonlyMap<number, string>,
): Verdict | undefined {
  const code = bytes.getInt32(targetAt + DATA_AT, true), kind = VERDICTS[code], chain = chains.get(code);
  if (kind !== undefined) return { kind };
  // A rule without a target.
  if (code === at + length) return { kind: "continue" };
  return chain === undefined ? undefined : { kind: "jump", chain };
}

function nameOf({ bytes, targetAt }: LegacyEntry): string {
  return textIn(bytes, targetAt + NAME_AT, XT_EXTENSION_MAXNAMELEN);
}

function chainName({ bytes, targetAt }: LegacyEntry): string {
  return textIn(bytes, targetAt + DATA_AT, XT_FUNCTION_MAXNAMELEN);
}

function bytesOf({ buffer, byteOffset }: DataView<ArrayBuffer>, at: number, length: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + at, length);
}

function textIn(bytes: DataView<ArrayBuffer>, at: number, length: number): string {
  const all = bytesOf(bytes, at, length), end = all.indexOf(0);
  return fromUtf8(end < 0 ? all : all.subarray(0, end));
}
