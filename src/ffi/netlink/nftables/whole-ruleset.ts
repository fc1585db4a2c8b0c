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
import type { NetlinkSocket } from "../socket.ts";
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

/** Rules change while they are read. Undefined when they never stood still meanwhile. Without nf_tables there are none. */
export function readRuleset(ask: AskNetfilter): Ruleset | undefined {
  const chains = ask((socket) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const generation = currentGeneration(socket);
      if (generation === undefined) return [];
      const chains = readChains(socket);
      if (currentGeneration(socket) === generation) return chains;
    }
    return undefined;
  });
  const sets = new SetsOnDemand(ask);
  return chains && { chains, setOf: (chain, name) => sets.named(chain, name) };
}

function readChains(socket: NetlinkSocket): RuleChain[] {
  const dormant = new Set(
    list(
      socket,
      nft.NFT_MSG_GETTABLE,
      tableAttrs,
      ({ name, flags = 0 }, family) => (flags & nft.NFT_TABLE_F_DORMANT) !== 0 ? [`${family} ${name}`] : [],
    ),
  );
  const listed = list(socket, nft.NFT_MSG_GETRULE, ruleAttrs, (found, family) => [
    { chain: keyOfObject(family, found.table, found.chain), rule: new ListedRule(found) },
  ]);
  const rules = Map.groupBy(listed, ({ chain }) => chain);
  return list(socket, nft.NFT_MSG_GETCHAIN, chainAttrs, (found, number): RuleChain[] => {
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

function list<R extends Rows, T>(
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

class SetsOnDemand {
  private readonly read = new Map<string, RuleSet | undefined>();

  constructor(private readonly ask: AskNetfilter) {}

  named(chain: RuleChain, name: string): RuleSet | undefined {
    const key = keyOfObject(chain.family, chain.table, name);
    if (!this.read.has(key)) this.read.set(key, this.ask((socket) => readSet(socket, chain, name)));
    return this.read.get(key);
  }
}

function readSet(socket: NetlinkSocket, { family, table }: RuleChain, name: string): RuleSet | undefined {
  const question = { what: `get set ${family} ${table} ${name}`, flags: 0, family: familyNumber(family) };
  const found = get(socket, {
    ...question,
    type: nft.NFT_MSG_GETSET,
    table: setAttrs,
    values: { table, name },
  }, setAttrs);
  if (found === undefined) return undefined;
  const elements = listObjects<SetElement>(
    socket,
    { ...question, type: nft.NFT_MSG_GETSETELEM, table: elementListAttrs, values: { table, set: name } },
    (payload, found) =>
      void found.push(
        ...(elementListAttrs.decode(payload).elements ?? []).map((element) => new ListedElement(element)),
      ),
  );
  const { flags = 0, keyLength = 0, description, objectType = nft.NFT_OBJECT_COUNTER } = found;
  return {
    isInterval: (flags & nft.NFT_SET_INTERVAL) !== 0,
    // What a limit or a quota says of the next packet is not known either.
    isChanging: (flags & (nft.NFT_SET_EVAL | nft.NFT_SET_TIMEOUT)) !== 0 || objectType !== nft.NFT_OBJECT_COUNTER,
    keyLength,
    parts: (flags & nft.NFT_SET_CONCAT) === 0 ? [] : (description?.parts ?? []).map(({ length }) => length!),
    elements,
  };
}

type FoundElement = NonNullable<ReturnType<typeof elementListAttrs.decode>["elements"]>[number];

class ListedElement implements SetElement {
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
