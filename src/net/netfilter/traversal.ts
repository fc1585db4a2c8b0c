/** A packet on its way through the chains of a hook: what can become of it, and by which rule. */
import { textOf } from "./known-bytes.ts";
import type { PacketFacts } from "./packet.ts";
import { applyRule } from "./rule.ts";
import type { RuleVerdict } from "./step.ts";
import type { BaseChain, HookName, Rule, RuleChain, Ruleset, RulesFamily, SetElement } from "./ruleset.ts";

/** A base chain's rule, or its policy. */
export interface Place {
  chain: RuleChain;
  rule?: Rule;
  /** What the rule found in a set, when that can be one element only. */
  element?: SetElement;
}

export type Fate = "passes" | "is dropped" | "is rejected" | "is queued" | "is unknown";

export interface WayOut {
  fate: Fate;
  /** As it leaves the hook, or where it ends. */
  packet: PacketFacts;
  /** What decided; undefined when no chain did. */
  by?: Place;
}

export interface Doubt extends Place {
  /** What could not be told. */
  about: string;
}

export interface Traversal {
  endings: WayOut[];
  /** The rules that left something open, in the order of the packet's way. */
  doubts: Doubt[];
}

export interface Passage {
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
  budget?: Budget;
}

/** How many rules are still looked at, for all packets together. What is not looked at is unknown. */
export interface Budget {
  left: number;
}

/** Some seconds of work: jumps multiply. */
export function newBudget(): Budget {
  return { left: 200_000 };
}

/** The kernel's own limit for jumps (NFT_JUMP_STACK_SIZE). */
const DEEPEST = 16;
/** Packets that differ in what rules made of them; more are not followed. */
const MOST_PACKETS = 64;
/** As many as somebody reads. */
const MOST_DOUBTS = 64;

export function traverse(ruleset: Ruleset, packet: PacketFacts, passage: Passage): Traversal {
  const walk = new Walk(ruleset, passage.budget ?? newBudget());
  let passing: WayOut[] = [{ fate: "passes", packet }];
  const ended: WayOut[] = [];
  for (const group of groupsOf(ruleset, packet, passage)) {
    const endings = passing.flatMap((ending) => walk.through(group, ending));
    ended.push(...endings.filter(({ fate }) => fate !== "passes"));
    passing = distinct(endings.filter(({ fate }) => fate === "passes"));
    if (passing.length > MOST_PACKETS) {
      passing = [{ ...passing[0]!, fate: "is unknown" }];
      break;
    }
  }
  return { endings: [...passing, ...distinct(ended)], doubts: walk.doubts };
}

/** What can be said for certain; undefined when it depends. */
export function certainFate({ endings }: Traversal): Fate | undefined {
  const fates = new Set(endings.map(({ fate }) => fate));
  return fates.size === 1 && !fates.has("is unknown") ? endings[0]!.fate : undefined;
}

const CONNTRACK = -200;
const NAT_AT: Partial<Record<HookName, number>> = { prerouting: -100, output: -100, input: 100, postrouting: 100 };

interface Group {
  priority: number;
  isNat: boolean;
  chains: RuleChain[];
}

/**
 * In the kernel's order, which has the youngest of one priority first. Chains that translate are one step, and see only the first packet of a
 * connection.
 */
function groupsOf(
  { chains }: Ruleset,
  packet: PacketFacts,
  { hook, from = -Infinity, before = Infinity, isBridge = false, device, withoutNat = false }: Passage,
): Group[] {
  const ofIp: RulesFamily[] = [packet.family === 4 ? "ip" : "ip6", "inet"];
  const families: RulesFamily[] = isBridge ? ["bridge"] : device === undefined ? ofIp : ["netdev", "inet"];
  const based = chains.filter((chain): chain is RuleChain & { base: BaseChain } =>
    chain.base?.hook === hook && families.includes(chain.family) &&
    (device === undefined || chain.base.devices?.includes(device) === true)
  ).reverse().sort((left, right) => left.base.priority - right.base.priority);
  const nat = based.filter(({ base }) => base.type === "nat");
  const groups: Group[] = based.filter(({ base }) => base.type !== "nat")
    .map((chain) => ({ priority: chain.base.priority, isNat: false, chains: [chain] }));
  if (nat.length > 0 && !withoutNat) groups.push({ priority: NAT_AT[hook] ?? 0, isNat: true, chains: nat });
  return groups.filter(({ priority }) => priority >= from && priority < before)
    .sort((left, right) => left.priority - right.priority);
}

class Walk {
  readonly doubts: Doubt[] = [];

  constructor(private readonly ruleset: Ruleset, private readonly budget: Budget) {}

  through({ isNat, chains }: Group, ending: WayOut): WayOut[] {
    if (isNat && ending.packet.state !== "new" && ending.packet.state !== undefined) return [ending];
    let passing = [ending];
    const done: WayOut[] = [];
    for (const chain of chains) {
      const endings = passing.flatMap(({ packet }) => this.base(chain, packet));
      // What one chain has translated, no other one does.
      const isDone = ({ fate, packet }: WayOut) =>
        fate !== "passes" || (isNat && packet.status !== ending.packet.status);
      done.push(...endings.filter(isDone));
      passing = endings.filter((each) => !isDone(each));
    }
    return [...done, ...passing];
  }

  private base(chain: RuleChain, packet: PacketFacts): WayOut[] {
    const { hook, priority, policy } = chain.base!;
    // Before conntrack has seen it, a packet has no connection, and is invalid to rules.
    const isEarly = (hook === "prerouting" || hook === "output") && priority < CONNTRACK &&
      packet.state !== "untracked";
    const { endings, through } = this.chain(chain, [isEarly ? { ...packet, state: "invalid" } : packet], 0);
    const fate = policy === "drop" ? "is dropped" : "passes";
    const all = [...endings, ...through.map((packet): WayOut => ({ fate, packet, by: { chain } }))];
    if (!isEarly) return all;
    return all.map((end) =>
      end.packet.state === "invalid" ? { ...end, packet: { ...end.packet, state: packet.state } } : end
    );
  }

  private chain(
    chain: RuleChain,
    packets: PacketFacts[],
    depth: number,
  ): { endings: WayOut[]; through: PacketFacts[] } {
    const endings: WayOut[] = [], returned: PacketFacts[] = [];
    let passing = packets;
    for (const rule of chain.rules) {
      const next: PacketFacts[] = [];
      for (const packet of passing) {
        this.budget.left--;
        const { ends, through, doubt } = applyRule(rule, packet, chain, this.ruleset);
        if (doubt !== undefined && this.doubts.length < MOST_DOUBTS) this.doubts.push({ chain, rule, about: doubt });
        next.push(...through);
        for (const end of ends) {
          const fate = fateOf(end.verdict), by = { chain, rule, element: end.element };
          if (fate !== undefined) endings.push({ fate, packet: end.packet, by });
          else if (end.verdict.kind === "continue") next.push(end.packet);
          else if (end.verdict.kind === "return") returned.push(end.packet);
          else this.jump(end.verdict as Jump, { chain, rule }, end.packet, depth, { endings, next, returned });
        }
      }
      passing = distinctPackets(next);
      if (passing.length > MOST_PACKETS || (this.budget.left < 0 && passing.length > 0)) {
        this.doubts.push({ chain, rule, about: "too many ways" });
        return { endings: [{ fate: "is unknown", packet: passing[0]!, by: { chain, rule } }], through: [] };
      }
      if (passing.length === 0) break;
    }
    return { endings: distinct(endings), through: distinctPackets([...passing, ...returned]) };
  }

  private jump(
    { kind, chain: name }: Jump,
    from: Place,
    packet: PacketFacts,
    depth: number,
    { endings, next, returned }: { endings: WayOut[]; next: PacketFacts[]; returned: PacketFacts[] },
  ): void {
    const target = chainNamed(this.ruleset, from.chain, name);
    if (target === undefined || depth === DEEPEST) {
      endings.push({ fate: "is unknown", packet, by: from });
      return;
    }
    const inner = this.chain(target, [packet], depth + 1);
    for (const ending of inner.endings) endings.push(ending);
    // After a goto, the chain that it was in is over.
    (kind === "jump" ? next : returned).push(...inner.through);
  }
}

const byName = new WeakMap<Ruleset, Map<string, RuleChain>>();

/** The chain of that name in the table of the other one. */
function chainNamed(ruleset: Ruleset, { family, table }: RuleChain, name: string): RuleChain | undefined {
  const keyOfChain = (chain: Pick<RuleChain, "family" | "table" | "name">) =>
    [chain.family, chain.table, chain.name].join("\0");
  let chains = byName.get(ruleset);
  if (chains === undefined) {
    chains = new Map(ruleset.chains.map((chain) => [keyOfChain(chain), chain]));
    byName.set(ruleset, chains);
  }
  return chains.get(keyOfChain({ family, table, name }));
}

type Jump = { kind: "jump" | "goto"; chain: string };

function fateOf({ kind }: RuleVerdict): Fate | undefined {
  switch (kind) {
    case "accept":
      return "passes";
    case "drop":
      return "is dropped";
    case "reject":
      return "is rejected";
    case "queue":
      return "is queued";
    case "unknown":
      return "is unknown";
    default:
      return undefined;
  }
}

function keyOf({ link, network, transport, mark, connectionMark, status, state }: PacketFacts): string {
  return [link, network, transport, mark, connectionMark, status].map(textOf).join() + (state ?? "");
}

function distinctPackets(packets: readonly PacketFacts[]): PacketFacts[] {
  return packets.length < 2 ? [...packets] : [...new Map(packets.map((packet) => [keyOf(packet), packet])).values()];
}

function distinct(endings: readonly WayOut[]): WayOut[] {
  const key = ({ fate, packet, by }: WayOut) =>
    fate === "passes"
      ? keyOf(packet)
      : `${fate} ${by?.chain.family} ${by?.chain.table} ${by?.chain.name} ${by?.rule?.handle}`;
  const found = new Map<string, WayOut>();
  for (const ending of endings) {
    const { by } = ending, isOtherElement = by?.element !== (found.get(key(ending)) ?? ending).by?.element;
    found.set(key(ending), isOtherElement ? { ...ending, by: by && { ...by, element: undefined } } : ending);
  }
  return [...found.values()];
}
