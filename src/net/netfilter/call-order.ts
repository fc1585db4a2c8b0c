/** In which order the kernel calls the base chains of a hook, as far as that can be known. */
import type { BaseChain, HookName, RuleChain, Ruleset, RulesFamily } from "./ruleset.ts";

/** Where addresses are translated (enum nf_ip_hook_priorities). */
export const NAT_AT = { prerouting: -100, output: -100, input: 100, postrouting: 100 } as const;

/** What the kernel calls once: a base chain, or all chains that translate. */
export interface Called {
  priority: number;
  table: string;
  /** More than one only where they translate. */
  chains: BasedChain[];
  isNat: boolean;
}

export type BasedChain = RuleChain & { base: BaseChain };

/**
 * What is called at one priority, by its table. The kernel calls the youngest first. The chains of one table are listed by
 * age; how old those of two tables are, it does not tell.
 */
export type Moment<T> = T[][];

export function moments<T>(
  called: readonly T[],
  priority: (one: T) => number,
  table: (one: T) => string,
): Moment<T>[] {
  return [...Map.groupBy(called, priority)].sort(([left], [right]) => left - right)
    .map(([, those]) => [...Map.groupBy(those, table).values()]);
}

export interface ChainChoice {
  hook: HookName;
  /** Only chains from this priority on, and before the other. */
  from?: number;
  before?: number;
  /** Without chains that translate: the connection is known here already. */
  withoutNat?: boolean;
  /** Chains of bridges, which see a packet as a frame; otherwise those of IP. */
  isBridge?: boolean;
  /** Chains of the link by which it comes in or leaves (ingress, egress). */
  device?: string;
}

/** Chains that translate are one step, and see only the first packet of a connection. */
export function calledIn(
  { chains }: Ruleset,
  family: 4 | 6,
  { hook, from = -Infinity, before = Infinity, isBridge = false, device, withoutNat = false }: ChainChoice,
): Moment<Called>[] {
  const ofIp: RulesFamily[] = [family === 4 ? "ip" : "ip6", "inet"];
  const families: RulesFamily[] = isBridge ? ["bridge"] : device === undefined ? ofIp : ["netdev", "inet"];
  // The kernel lists the oldest of a table first.
  const based = chains.filter((chain): chain is BasedChain =>
    chain.base?.hook === hook && families.includes(chain.family) &&
    (device === undefined || chain.base.devices?.includes(device) === true)
  ).reverse();
  const nat = based.filter(({ base }) => base.type === "nat");
  const called: Called[] = based.filter(({ base }) => base.type !== "nat")
    .map((chain) => ({ priority: chain.base.priority, table: tableOf(chain), chains: [chain], isNat: false }));
  if (nat.length > 0 && !withoutNat) {
    called.push({ priority: isTranslating(hook) ? NAT_AT[hook] : 0, table: "", chains: nat, isNat: true });
  }
  return moments(
    called.filter(({ priority }) => priority >= from && priority < before),
    ({ priority }) => priority,
    ({ table }) => table,
  );
}

/** An older table may have the name of one of nf_tables. */
export function tableOf({ family, table, isLegacy }: RuleChain): string {
  return `${isLegacy ? "older " : ""}${family}\0${table}`;
}

function isTranslating(hook: HookName): hook is keyof typeof NAT_AT {
  return hook in NAT_AT;
}
