/**
 * What all nftables tables of ours do; own-tables.ts lists them, and says what they consist of. A kind of resource
 * describes its table by `TableFacts`, and adds what is special about its elements.
 *
 * - A container has elements in sets and maps. Their keys are its addresses, ports or links, and their comment is its owner.
 *   Elements are looked up by key, so neither a packet nor a verb takes longer when there are more containers.
 * - Some elements refer to a counter. The kernel keeps how many do, so the last one is known without listing the others.
 * - A counter may have maps and rules that only its elements need (`Group`). They are removed with its last element, and
 *   the table with its last group.
 */
import { EBUSY } from "../../../ffi/errno.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import {
  addBaseChain,
  addTable,
  type Chain,
  chainUse,
  counterUse,
  createChain,
  createCounter,
  delChain,
  delCounter,
  delTable,
  nameOfTable,
  tableUse,
} from "../../../ffi/netlink/nftables/table.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { delRule, flushChain, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  createIntervalMap,
  createMap,
  createSet,
  delElement,
  delSet,
  type Element,
  getElement,
  listElements,
  type NftSet,
} from "../../../ffi/netlink/nftables/set.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { Backend } from "./backend.ts";
import { netfilterOf } from "./netfilter-socket.ts";
import type { FoundElement, Group, GroupPlace, OwnChain, OwnSet, OwnTable, TableFacts } from "./own-tables.ts";
import { isLost, ownerComment } from "./owner-comment.ts";
import { addRules, hasRules, mendRules, type OwnRules } from "./own-rules.ts";

export class OwnedTable {
  readonly table: OwnTable;
  /** `inet patchbay_masquerade` */
  readonly name: string;
  private readonly rules: readonly OwnRules[];

  constructor(private readonly facts: TableFacts) {
    this.table = facts.table;
    this.name = nameOfTable(facts.table);
    this.rules = facts.chains.filter((one): one is OwnChain & OwnRules => one.rules !== undefined);
  }

  /** The table with all that `TableFacts` names. The table and its chains with a hook may exist already, nothing else. */
  frame(): NftMessage[] {
    const { chains, sets = [], counter } = this.facts, messages = this.base();
    for (const { chain, hook } of chains) if (hook === undefined) messages.push(createChain(chain));
    if (counter !== undefined) messages.push(createCounter(this.table, counter));
    for (const set of sets) messages.push(created(set));
    for (const own of this.rules) messages.push(...addRules(own));
    return messages;
  }

  /** The table and its chains with a hook, unless they exist. */
  private base(): NftMessage[] {
    const messages = [addTable(this.table, this.table.comment)];
    for (const { chain, hook } of this.facts.chains) if (hook !== undefined) messages.push(addBaseChain(chain, hook));
    return messages;
  }

  create({ counter, maps, rules }: Group): NftMessage[] {
    return [createCounter(this.table, counter), ...maps.map(created), ...addRules(rules)];
  }

  counterUse(socket: NetlinkSocket, counter: string): number | undefined {
    return counterUse(socket, this.table, counter);
  }

  exists(socket: NetlinkSocket): boolean {
    return tableUse(socket, this.table) !== undefined;
  }

  /** Writes rules of the chains and of these groups again that others removed or altered. */
  mend(socket: NetlinkSocket, groups: readonly Group[] = []): NftMessage[] {
    const messages: NftMessage[] = [];
    for (const own of this.rules) messages.push(...mendRules(socket, own));
    for (const { rules } of groups) messages.push(...mendRules(socket, rules));
    return messages.length === 0 ? [] : [...this.base(), ...messages];
  }

  /** One line for each chain and each of these groups whose rules others removed or altered. */
  verifyRules(socket: NetlinkSocket, groups: readonly Group[] = []): string[] {
    const differences: string[] = [];
    for (const own of this.rules) {
      if (hasRules(socket, own)) continue;
      const where = `chain ${own.chain.name} of table ${this.name}`;
      differences.push(
        own.replaces ? `${where} has other rules than it should` : `a rule in ${where} is missing or altered`,
      );
    }
    for (const { counter, rules } of groups) {
      if (!hasRules(socket, rules)) {
        differences.push(`a rule for counter ${counter} of table ${this.name} is missing or altered`);
      }
    }
    return differences;
  }

  /** Makes the element, or replaces the one with its key. */
  put(socket: NetlinkSocket, set: NftSet, element: Element): NftMessage[] {
    const found = getElement(socket, set, element.key);
    if (found === undefined) return [createElement(set, element)];
    if (found.comment === element.comment && found.counter === element.counter) return [];
    return [delElement(set, element.key), createElement(set, element)];
  }

  /** Puts the owner's elements under the counter, and removes the groups that only those in their place needed. */
  move(socket: NetlinkSocket, places: readonly GroupPlace[], element: Omit<Element, "key">): NftMessage[] {
    const before: FoundElement[] = [], created: NftMessage[] = [];
    for (const { set, key } of places) {
      const found = getElement(socket, set, key);
      if (found?.comment === element.comment && found.counter === element.counter) continue;
      if (found !== undefined) before.push({ ...found, set });
      created.push(createElement(set, { ...element, key }));
    }
    const unused = this.unusedWithout(socket, before).filter((one) => one !== element.counter);
    return [...this.planGroups(socket, before, unused), ...created];
  }

  /** One line if the element is missing, another owner's, or under another counter. `what` names it. */
  verifyElement(socket: NetlinkSocket, set: NftSet, { key, comment, counter }: Element, what: string): string[] {
    const found = getElement(socket, set, key);
    if (found === undefined) return [`${what} is missing`];
    if (found.comment !== comment) return [`${what} belongs to "${found.comment}"`];
    return found.counter === counter ? [] : [`${what} is under "${found.counter}"`];
  }

  /** The elements at these places that are the owner's. */
  find(socket: NetlinkSocket, places: Iterable<GroupPlace>, owner: string): FoundElement[] {
    const held: FoundElement[] = [];
    for (const { set, key } of places) {
      const element = getElement(socket, set, key);
      if (element?.comment === owner) held.push({ ...element, set });
    }
    return held;
  }

  /** Lists the sets, for elements whose keys are not known. */
  findWhere(socket: NetlinkSocket, sets: Iterable<NftSet>, isMeant: (comment: string) => boolean): FoundElement[] {
    const held: FoundElement[] = [];
    for (const set of sets) {
      for (const element of listElements(socket, set)) if (isMeant(element.comment)) held.push({ ...element, set });
    }
    return held;
  }

  /** The counters to which only these elements refer. */
  unusedWithout(socket: NetlinkSocket, removed: readonly FoundElement[]): string[] {
    const counts = new Map<string, number>(), unused: string[] = [];
    for (const { counter } of removed) {
      if (counter !== undefined) counts.set(counter, (counts.get(counter) ?? 0) + 1);
    }
    for (const [counter, count] of counts) {
      const own = this.facts.groups?.elements?.(counter).filter(({ refers }) => refers).length ?? 0;
      if (this.counterUse(socket, counter) === count + own) unused.push(counter);
    }
    return unused;
  }

  /** Removes the elements that `find` returns, and the groups and the table that only they needed. */
  remove(socket: NetlinkSocket, find: () => readonly FoundElement[]): void {
    try {
      commitUnchanged(socket, () => this.planRemoval(socket, find()));
    } catch (error) {
      // A rule of another program uses a map of ours: its group has to stay.
      if (!isNetlinkError(error, EBUSY)) throw error;
      commitUnchanged(socket, () => deletions(find()));
    }
  }

  /**
   * `remove` and `sweep` of a kind or a backend. `places` are where the elements of a specification are. `sets` are all sets in which
   * owners have elements; they are listed when the places are not known.
   */
  removal<Spec extends Owner>(
    places: (spec: Spec) => Iterable<GroupPlace>,
    sets: (socket: NetlinkSocket) => Iterable<NftSet>,
  ): Required<Pick<Backend<Spec>, "remove" | "sweep">> {
    const removeWhere = (socket: NetlinkSocket, isMeant: (comment: string) => boolean) =>
      this.remove(socket, () => this.findWhere(socket, sets(socket), isMeant));
    return {
      remove: (spec, host, isRestated) => {
        const socket = netfilterOf(host), owner = ownerComment(spec);
        if (socket === undefined) return;
        if (isRestated) removeWhere(socket, (comment) => comment === owner);
        else this.remove(socket, () => this.find(socket, places(spec), owner));
      },
      sweep: (network, isValid, host) => {
        const socket = netfilterOf(host);
        if (socket !== undefined) removeWhere(socket, (comment) => isLost(comment, network, isValid));
      },
    };
  }

  planRemoval(
    socket: NetlinkSocket,
    removed: readonly FoundElement[],
    unused: readonly string[] = this.unusedWithout(socket, removed),
  ): NftMessage[] {
    if (unused.length > 0 && this.holdsNothingBut(socket, unused)) return [delTable(this.table)];
    return this.planGroups(socket, removed, unused);
  }

  /** Removes the elements and these counters' groups, but not the table. */
  planGroups(socket: NetlinkSocket, removed: readonly FoundElement[], unused: readonly string[]): NftMessage[] {
    if (unused.length === 0) return deletions(removed);
    const maps = this.mapsOf(unused);
    return [
      ...this.deleteRulesFor(socket, maps),
      // Deleting a counter takes that no element refers to it. Elements without one are deleted with their map.
      ...deletions(removed.filter(({ set, counter }) => counter !== undefined || !maps.has(set.name))),
      ...this.deleteGroupElements(socket, unused),
      ...[...maps].map((name) => delSet({ table: this.table, name })),
      ...this.chainsOf(socket, unused).flatMap((chain) => [flushChain(chain), delChain(chain)]),
      ...unused.map((counter) => delCounter(this.table, counter)),
    ];
  }

  /** Whether these counters' groups are all that the table has. Other programs may have added something of theirs. */
  private holdsNothingBut(socket: NetlinkSocket, counters: readonly string[]): boolean {
    const { chains, sets = [], counter } = this.facts;
    if (counter !== undefined) return true;
    const ofGroups = this.mapsOf(counters).size + this.chainsOf(socket, counters).length + counters.length;
    return tableUse(socket, this.table) === chains.length + sets.length + ofGroups;
  }

  private mapsOf(counters: readonly string[]): Set<string> {
    return new Set(counters.flatMap((counter) => this.facts.groups?.maps?.(counter) ?? []));
  }

  private chainsOf(socket: NetlinkSocket, counters: readonly string[]): Chain[] {
    const chains = counters.flatMap((counter) => this.facts.groups?.chain?.(counter) ?? []);
    return chains.filter((chain) => chainUse(socket, chain) !== undefined);
  }

  private deleteRulesFor(socket: NetlinkSocket, maps: ReadonlySet<string>): NftMessage[] {
    const { ruleChains = [], mapOfRule } = this.facts.groups ?? {}, messages: NftMessage[] = [];
    for (const chain of ruleChains) {
      for (const { handle, expressions } of listRules(socket, chain)) {
        if (maps.has(mapOfRule?.(expressions) ?? "")) messages.push(delRule(chain, handle));
      }
    }
    return messages;
  }

  private deleteGroupElements(socket: NetlinkSocket, counters: readonly string[]): NftMessage[] {
    const messages: NftMessage[] = [];
    for (const counter of counters) {
      for (const { set, key, refers } of this.facts.groups?.elements?.(counter) ?? []) {
        if (refers || getElement(socket, set, key) !== undefined) messages.push(delElement(set, key));
      }
    }
    return messages;
  }
}

function created({ set, key, holds, intervals }: OwnSet): NftMessage {
  if (holds === "keys") return createSet(set, key);
  if (holds === "counters") return createCounterMap(set, key);
  return intervals ? createIntervalMap(set, key, holds) : createMap(set, key, holds);
}

function deletions(elements: readonly FoundElement[]): NftMessage[] {
  return elements.map(({ set, key, keyEnd }) => delElement(set, key, keyEnd));
}
