/** All of nf_tables in the words of net/netfilter/ruleset.ts: chains and rules at once, a set when a rule asks for it. */
import {
  type BaseChain,
  HOOK_NAMES,
  type HookName,
  type Rule,
  type RuleChain,
  type RuleSet,
  type Ruleset,
  type SetElement,
  type Verdict,
} from "../../../net/netfilter/ruleset.ts";
import { type AttrsOf, type AttrTable, attrTable, binary, exactText, type Rows, u64be } from "../attrs.ts";
import { EINTR } from "../../errno.ts";
import { insteadOfRefusal, type NetlinkSocket } from "../socket.ts";
import * as nft from "../uapi/nf-tables.ts";
import { currentGeneration } from "./batch.ts";
import { commentIn, ownerTagIn } from "./comment.ts";
import { operationOf, verdictOf } from "./decode.ts";
import { expressionList, type FoundExpression } from "./expression.ts";
import { matchedComment } from "./extension.ts";
import { familyNames, familyNumber, get, listObjects } from "./message.ts";
import { elementListAttrs, setAttrs } from "./set.ts";
import { chainAttrs, tableAttrs } from "./table.ts";

const ruleAttrs = attrTable("NFTA_RULE", {
  table: exactText(nft.NFTA_RULE_TABLE),
  chain: exactText(nft.NFTA_RULE_CHAIN),
  handle: u64be(nft.NFTA_RULE_HANDLE),
  expressions: binary(nft.NFTA_RULE_EXPRESSIONS),
  userdata: binary(nft.NFTA_RULE_USERDATA),
});

const UNSPECIFIED = 0;

/** Runs a question with a socket of the namespace whose rules are read, now or when a set is asked for. */
export type AskNetfilter = <T>(question: (socket: NetlinkSocket) => T) => T;

const ATTEMPTS = 5;

/**
 * Rules change while they are read. Undefined when they never stood still meanwhile. Without nf_tables there are none.
 * `mayFail`: `ask` takes another socket when a question has thrown, so a long list need not be read to its end.
 */
export function readRuleset(ask: AskNetfilter, mayFail = false): Ruleset | undefined {
  const chains = ask((socket) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const generation = currentGeneration(socket);
      if (generation === undefined) return [];
      const chains = readChains(socket);
      if (currentGeneration(socket) === generation) return chains;
    }
    return undefined;
  });
  const sets = new SetsOnDemand(ask, mayFail);
  return chains && { chains, setOf: (chain, name) => sets.named(chain, name) };
}

function readChains(socket: NetlinkSocket): RuleChain[] {
  const dormant = new Set(
    listAll(
      socket,
      nft.NFT_MSG_GETTABLE,
      tableAttrs,
      ({ name, flags = 0 }, family) => (flags & nft.NFT_TABLE_F_DORMANT) !== 0 ? [`${family} ${name}`] : [],
    ),
  );
  const listed = listAll(socket, nft.NFT_MSG_GETRULE, ruleAttrs, (found, family) => [
    { chain: keyOfObject(family, found.table, found.chain), rule: new ListedRule(found) },
  ]);
  const rules = Map.groupBy(listed, ({ chain }) => chain);
  return listAll(socket, nft.NFT_MSG_GETCHAIN, chainAttrs, (found, number): RuleChain[] => {
    const family = familyNames[number], { table, name } = found;
    if (family === undefined || dormant.has(`${number} ${table}`)) return [];
    const own = rules.get(keyOfObject(number, table, name)) ?? [];
    return [{ family, table: table!, name: name!, base: baseOf(found, number), rules: own.map(({ rule }) => rule) }];
  });
}

/** Names may have blanks in them. */
function keyOfObject(...names: (string | number | undefined)[]): string {
  return names.join("\0");
}

/** What all families have. */
export function listAll<R extends Rows, T>(
  socket: NetlinkSocket,
  type: number,
  table: AttrTable<R>,
  take: (values: AttrsOf<R>, family: number) => T[],
): T[] {
  const question = { what: `list all, ${table.name}`, type, flags: 0, family: UNSPECIFIED, table, values: {} };
  return listObjects<T>(
    socket,
    question,
    (payload, found, family) => void found.push(...take(table.decode(payload), family)),
  );
}

const NETDEV_HOOKS: readonly HookName[] = ["ingress", "egress"];

function baseOf({ hook, policy, type }: ReturnType<typeof chainAttrs.decode>, family: number): BaseChain | undefined {
  if (hook?.number === undefined) return undefined;
  return {
    hook: (family === nft.NFPROTO_NETDEV ? NETDEV_HOOKS : HOOK_NAMES)[hook.number] ?? "ingress",
    priority: hook.priority! | 0,
    type: type === "nat" || type === "route" ? type : "filter",
    policy: policy === nft.NF_DROP ? "drop" : "accept",
    devices: hook.devices ?? (hook.device === undefined ? undefined : [hook.device]),
  };
}

/** Decoded when a packet comes to it, or somebody asks whose it is: there may be thousands. */
class ListedRule implements Rule {
  readonly handle: bigint;
  private decoded?: Rule["operations"];

  constructor(private readonly found: ReturnType<typeof ruleAttrs.decode>) {
    this.handle = found.handle!;
  }

  get operations(): Rule["operations"] {
    return this.decoded ??= expressionsOf(this.found).map(operationOf);
  }

  get comment(): string | undefined {
    return commentIn(this.found.userdata) || matchedComment(expressionsOf(this.found));
  }

  get owner(): string | undefined {
    return ownerTagIn(this.found.userdata);
  }
}

function expressionsOf({ expressions }: ReturnType<typeof ruleAttrs.decode>): FoundExpression[] {
  return expressions === undefined ? [] : expressionList.read(expressions) as FoundExpression[];
}

/**
 * What of sets is read of a namespace: root of a container makes as many elements as it likes. An element counts as so many
 * bytes at least.
 */
const MOST_BYTES = 8_000_000, LEAST_BYTES = 40;

class TooLarge extends Error {}

class SetsOnDemand {
  private readonly read = new Map<string, RuleSet | undefined>();
  private keptRoom = MOST_BYTES;
  private readRoom = 2 * MOST_BYTES;

  constructor(private readonly ask: AskNetfilter, private readonly mayFail: boolean) {}

  named(chain: RuleChain, name: string): RuleSet | undefined {
    return this.read.getOrInsertComputed(keyOfObject(chain.family, chain.table, name), () => {
      const set = this.ask((socket) => readSet(socket, chain, name));
      if (set === undefined || set.isChanging) return set;
      // For one that is too large, too, nobody knows what is in it.
      return this.withElements(set, chain, name) ?? { ...set, isChanging: true };
    });
  }

  private withElements(set: RuleSet, chain: RuleChain, name: string): RuleSet | undefined {
    const room = Math.min(this.keptRoom, this.readRoom);
    let bytes = 0;
    const count = (more: number) => {
      bytes += more;
      if (bytes > room && this.mayFail) throw new TooLarge();
      return bytes <= room;
    };
    try {
      const elements = this.ask((socket) => readElements(socket, chain, name, count, () => void (bytes = 0)));
      if (elements === undefined || bytes > room) return undefined;
      this.keptRoom -= bytes;
      return { ...set, elements };
    } catch (error) {
      if (error instanceof TooLarge) return undefined;
      throw error;
    } finally {
      this.readRoom -= bytes;
    }
  }
}

function question(what: string, { family, table }: RuleChain, name: string) {
  return { what: `${what} ${family} ${table} ${name}`, flags: 0, family: familyNumber(family) };
}

/** Without its elements. */
function readSet(socket: NetlinkSocket, chain: RuleChain, name: string): RuleSet | undefined {
  const found = get(socket, {
    ...question("get set", chain, name),
    type: nft.NFT_MSG_GETSET,
    table: setAttrs,
    values: { table: chain.table, name },
  }, setAttrs);
  if (found === undefined) return undefined;
  const { flags = 0, keyLength = 0, description, objectType = nft.NFT_OBJECT_COUNTER } = found;
  return {
    isInterval: (flags & nft.NFT_SET_INTERVAL) !== 0,
    // What a limit or a quota says of the next packet is not known either.
    isChanging: (flags & (nft.NFT_SET_EVAL | nft.NFT_SET_TIMEOUT)) !== 0 || objectType !== nft.NFT_OBJECT_COUNTER,
    keyLength,
    parts: (flags & nft.NFT_SET_CONCAT) === 0 ? [] : (description?.parts ?? []).map(({ length }) => length!),
    elements: [],
  };
}

/** Undefined when they change all the time. `onStart` is called before the first part of them, and `isWanted` for each. */
function readElements(
  socket: NetlinkSocket,
  chain: RuleChain,
  name: string,
  isWanted: (bytes: number) => boolean,
  onStart: () => void,
): SetElement[] | undefined {
  const message = {
    ...question("list set", chain, name),
    type: nft.NFT_MSG_GETSETELEM,
    table: elementListAttrs,
    values: { table: chain.table, set: name },
    attempts: ATTEMPTS,
  };
  return insteadOfRefusal([EINTR], undefined, () =>
    listObjects<SetElement>(socket, message, (payload, found) => {
      if (found.length === 0) onStart();
      const elements = elementListAttrs.decode(payload).elements ?? [];
      if (!isWanted(Math.max(payload.length, elements.length * LEAST_BYTES))) return;
      for (const element of elements) found.push(new ListedElement(element));
    }));
}

type FoundElement = NonNullable<ReturnType<typeof elementListAttrs.decode>["elements"]>[number];

export class ListedElement implements SetElement {
  readonly key?: Uint8Array;
  readonly keyEnd?: Uint8Array;
  readonly isEnd: boolean;
  readonly isTimed: boolean;
  readonly data?: Uint8Array;
  readonly verdict?: Verdict;
  private readonly userdata?: Uint8Array;

  constructor({ key, keyEnd, data, flags = 0, expiresMs, userdata }: FoundElement) {
    this.key = key?.value;
    this.keyEnd = keyEnd?.value;
    this.isEnd = (flags & nft.NFT_SET_ELEM_INTERVAL_END) !== 0;
    this.isTimed = expiresMs !== undefined;
    this.data = data?.value;
    this.verdict = verdictOf(data?.verdict);
    this.userdata = userdata;
  }

  get comment(): string | undefined {
    return commentIn(this.userdata) || undefined;
  }
}
