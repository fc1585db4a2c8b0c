/** A packet on its way through the chains of a hook: what can become of it, and by which rule. */
import { textOf } from "./known-bytes.ts";
import type { PacketFacts } from "./packet.ts";
import { applyRule, endsAtOnce } from "./rule.ts";
import type { RuleVerdict } from "./step.ts";
import type { Rule, RuleChain, Ruleset, SetElement } from "./ruleset.ts";
import {
  type BasedChain,
  type Called,
  calledIn,
  type ChainChoice,
  type Moment,
  moments,
  tableOf,
} from "./call-order.ts";

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

export interface Passage extends ChainChoice {
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
/** Ten tables have as many orders at one time. */
const MOST_STATES = 252;
/** As many as somebody reads. */
const MOST_DOUBTS = 64;

export function traverse(ruleset: Ruleset, packet: PacketFacts, passage: Passage): Traversal {
  const walk = new Walk(ruleset, passage.budget ?? newBudget());
  let passing: WayOut[] = [{ fate: "passes", packet }];
  const ended: WayOut[] = [];
  for (const moment of calledIn(ruleset, packet.family, passage)) {
    const endings = walk.through(moment, passing);
    ended.push(...endings.filter(hasEnded));
    passing = distinct(endings.filter((ending) => !hasEnded(ending)));
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
class Walk {
  readonly doubts: Doubt[] = [];

  constructor(private readonly ruleset: Ruleset, private readonly budget: Budget) {}

  through(moment: Moment<Called>, passing: WayOut[]): WayOut[] {
    return this.inAnyOrder(moment, passing, (called, ending) => this.call(called, ending), hasEnded);
  }

  private call({ isNat, chains }: Called, ending: WayOut): WayOut[] {
    if (!isNat) return this.base(chains[0]!, ending.packet);
    if (ending.packet.state !== "new" && ending.packet.state !== undefined) return [ending];
    // What one chain has translated, no other one does.
    const isDone = (each: WayOut) => hasEnded(each) || each.packet.status !== ending.packet.status;
    return moments(chains, ({ base }) => base.priority, tableOf).reduce<WayOut[]>((ends, moment) => [
      ...ends.filter(isDone),
      ...this.inAnyOrder(
        moment,
        ends.filter((each) => !isDone(each)),
        (chain, { packet }) => this.base(chain, packet),
        isDone,
      ),
    ], [ending]);
  }

  /**
   * How the lists of a moment are mixed is not known, so every order counts. A state is how much of each list has been
   * called.
   */
  private inAnyOrder<T>(
    lists: Moment<T>,
    passing: WayOut[],
    call: (one: T, ending: WayOut) => WayOut[],
    isDone: (ending: WayOut) => boolean,
  ): WayOut[] {
    const done: WayOut[] = [], found = new Map<T, Map<string, WayOut[]>>();
    const ask = (one: T, ending: WayOut) =>
      lists.length === 1 ? call(one, ending) : found.getOrInsertComputed(one, () => new Map()).getOrInsertComputed(
        keyOf(ending.packet),
        () => call(one, ending),
      );
    let states = new Map([[lists.map(() => 0).join(), passing]]);
    for (let calls = lists.flat().length; calls > 0; calls--) {
      const next = new Map<string, WayOut[]>();
      for (const [state, ways] of states) {
        const at = state.split(",").map(Number);
        if (ways.length === 0) continue;
        for (const [index, list] of lists.entries()) {
          if (at[index] === list.length) continue;
          if (ways.length > MOST_PACKETS || states.size > MOST_STATES || this.budget.left-- < 0) {
            return [...done, { ...ways[0]!, fate: "is unknown" }];
          }
          const ends = ways.flatMap((ending) => ask(list[at[index]!]!, ending));
          done.push(...ends.filter(isDone));
          const after = at.with(index, at[index]! + 1).join();
          next.set(after, distinct([...(next.get(after) ?? []), ...ends.filter((each) => !isDone(each))]));
        }
      }
      states = next;
    }
    return [...distinct(done), ...[...states.values()].flat()];
  }

  private base(chain: BasedChain, packet: PacketFacts): WayOut[] {
    const { hook, priority, policy } = chain.base;
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
      if (passing.every((packet) => endsAtOnce(rule, packet))) {
        this.budget.left -= passing.length;
        continue;
      }
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
function chainNamed(ruleset: Ruleset, from: RuleChain, name: string): RuleChain | undefined {
  let chains = byName.get(ruleset);
  if (chains === undefined) {
    chains = new Map(ruleset.chains.map((chain) => [`${tableOf(chain)}\0${chain.name}`, chain]));
    byName.set(ruleset, chains);
  }
  return chains.get(`${tableOf(from)}\0${name}`);
}

function hasEnded({ fate }: WayOut): boolean {
  return fate !== "passes";
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
  if (endings.length < 2) return [...endings];
  const key = ({ fate, packet, by }: WayOut) =>
    fate === "passes" ? keyOf(packet) : [fate, by && tableOf(by.chain), by?.chain.name, by?.rule?.handle].join("\0");
  const found = new Map<string, WayOut>();
  for (const ending of endings) {
    const { by } = ending, ofIts = key(ending);
    const isOtherElement = by?.element !== (found.get(ofIts) ?? ending).by?.element;
    found.set(ofIts, isOtherElement ? { ...ending, by: by && { ...by, element: undefined } } : ending);
  }
  return [...found.values()];
}
