/**
 * The rules of nf_tables and of iptables' older tables as data, whoever wrote them: what was read of the kernel, in words
 * (nft(8)). Pure, so that a recorded ruleset is judged as the kernel's is.
 */

export type RulesFamily = "ip" | "ip6" | "inet" | "bridge" | "netdev" | "arp";
/** By their numbers (enum nf_inet_hooks). */
export const HOOK_NAMES = ["prerouting", "input", "forward", "output", "postrouting"] as const;
export type HookName = "prerouting" | "input" | "forward" | "output" | "postrouting" | "ingress" | "egress";

export interface Ruleset {
  chains: readonly RuleChain[];
  /** A set with all its elements; undefined when it is gone meanwhile. */
  setOf(chain: RuleChain, name: string): RuleSet | undefined;
}

export interface RuleChain {
  family: RulesFamily;
  table: string;
  name: string;
  /** Undefined for a chain that others jump to. */
  base?: BaseChain;
  rules: readonly Rule[];
  /** It is one of the older tables, which may have names that nf_tables' have, too. Its rules' handles are their numbers. */
  isLegacy?: true;
}

export interface BaseChain {
  hook: HookName;
  priority: number;
  type: "filter" | "nat" | "route";
  policy: "accept" | "drop";
  /** The links whose packets it sees; undefined for all. */
  devices?: readonly string[];
}

export interface Rule {
  handle: bigint;
  readonly operations: readonly Operation[];
  /** As it was written, by nft or with a match of iptables: a terminal may obey it. */
  readonly comment?: string;
  /** What Patchbay noted of the owner, where iptables does not show it. */
  readonly owner?: string;
}

/** Where in the registers, in bytes: there are 64. */
export type Register = number;

export type PayloadBase = "link" | "network" | "transport" | "inner";
export type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=";

export type Verdict =
  | { kind: "accept" | "drop" | "return" | "continue" | "queue" }
  | { kind: "jump" | "goto"; chain: string };

export type Operation =
  | { does: "payload"; base: PayloadBase; offset: number; length: number; into: Register }
  | { does: "set payload"; base: PayloadBase; offset: number; length: number; from: Register }
  /** The key is a word of nft(8), such as `iifname`. */
  | { does: "meta"; key: string; into: Register }
  | { does: "set meta"; key: string; from: Register }
  | { does: "ct"; key: string; into: Register }
  | { does: "set ct"; key: string; from: Register }
  /** `oif exists` asks whether there is one. */
  | {
    does: "fib";
    asks: "oif" | "oifname" | "type" | "oif exists";
    of: "saddr" | "daddr";
    at?: "iif" | "elsewhere";
    into: Register;
  }
  | { does: "compare"; register: Register; how: Comparison; value: Uint8Array }
  | { does: "range"; register: Register; isInside: boolean; first: Uint8Array; last: Uint8Array }
  | { does: "mask"; from: Register; into: Register; mask: Uint8Array; xor: Uint8Array }
  /** Each number of `size` bytes has its bytes turned round. */
  | { does: "swap"; from: Register; into: Register; length: number; size: number }
  /** What a mapping yields goes into a register, or is the verdict. */
  | { does: "lookup"; register: Register; set: string; isInverted: boolean; into?: Register | "verdict" }
  | { does: "put"; into: Register; value: Uint8Array }
  | { does: "verdict"; verdict: Verdict }
  | { does: "nat"; changes: "source" | "destination"; address?: Register; port?: Register; isFirm: boolean }
  | { does: "masquerade" }
  | { does: "redirect"; port?: Register; isFirm: boolean }
  | { does: "reject" }
  | { does: "notrack" }
  /** xtables' own, as iptables-nft and the older tables have them. */
  | { does: "match" | "target"; name: string; revision: number; info: DataView }
  /** It changes nothing that another rule could ask for: a counter, a log. */
  | { does: "nothing"; name: string }
  /** It may end the rule, and what it loads cannot be known. */
  | { does: "guess"; name: string; into?: Register }
  /** It may do anything. */
  | { does: "something"; name: string };

export interface RuleSet {
  isInterval: boolean;
  /** Whether rules add elements, or elements run out of time. */
  isChanging: boolean;
  keyLength: number;
  /** The lengths of a concatenated key's parts where each part may be an interval, without padding. */
  parts: readonly number[];
  elements: readonly SetElement[];
}

export interface SetElement {
  /** Absent in the element that stands for all other keys. */
  key?: Uint8Array;
  /** The other end of a concatenated key with intervals. */
  keyEnd?: Uint8Array;
  /** The first key behind an interval. */
  isEnd: boolean;
  /** It is removed after a time. */
  isTimed: boolean;
  data?: Uint8Array;
  verdict?: Verdict;
  readonly comment?: string;
}
