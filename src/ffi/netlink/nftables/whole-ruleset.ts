/** All of nf_tables in the words of net/netfilter/ruleset.ts: chains and rules at once, a set when a rule asks for it. */
import type {
  BaseChain,
  HookName,
  Rule,
  RuleChain,
  RuleSet,
  Ruleset,
  RulesFamily,
  SetElement,
} from "../../../net/netfilter/ruleset.ts";
import {
  type AttrsOf,
  type AttrTable,
  attrTable,
  binary,
  custom,
  nest,
  type Rows,
  text,
  u32be,
  u64be,
} from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { eachAttribute } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";
import { currentGeneration } from "./batch.ts";
import { commentIn } from "./comment.ts";
import { operationOf, verdictOf } from "./decode.ts";
import { expressionList, type FoundExpression } from "./expression.ts";
import { get, listObjects } from "./message.ts";
import { elementListAttrs, setAttrs } from "./set.ts";

const tableAttrs = attrTable("NFTA_TABLE", { name: text(nft.NFTA_TABLE_NAME), flags: u32be(nft.NFTA_TABLE_FLAGS) });

const hookAttrs = attrTable("NFTA_HOOK", {
  number: u32be(nft.NFTA_HOOK_HOOKNUM),
  priority: u32be(nft.NFTA_HOOK_PRIORITY),
  device: text(nft.NFTA_HOOK_DEV),
  devices: nestedTexts(nft.NFTA_HOOK_DEVS),
});

const chainAttrs = attrTable("NFTA_CHAIN", {
  table: text(nft.NFTA_CHAIN_TABLE),
  name: text(nft.NFTA_CHAIN_NAME),
  hook: nest(nft.NFTA_CHAIN_HOOK, hookAttrs),
  policy: u32be(nft.NFTA_CHAIN_POLICY),
  type: text(nft.NFTA_CHAIN_TYPE),
});

const ruleAttrs = attrTable("NFTA_RULE", {
  table: text(nft.NFTA_RULE_TABLE),
  chain: text(nft.NFTA_RULE_CHAIN),
  handle: u64be(nft.NFTA_RULE_HANDLE),
  expressions: binary(nft.NFTA_RULE_EXPRESSIONS),
  userdata: binary(nft.NFTA_RULE_USERDATA),
});

/** A nest of texts, each in an attribute of its own. */
function nestedTexts(type: number) {
  return custom<string[]>(type, {
    nested: true,
    write() {
      throw new Error("only read");
    },
    read(payload) {
      const texts: string[] = [];
      eachAttribute(payload, (_type, bytes) => void texts.push(new TextDecoder().decode(bytes.subarray(0, -1))));
      return texts;
    },
  });
}

const UNSPECIFIED = 0;

/** Runs a question with a socket of the namespace whose rules are read, now or when a set is asked for. */
export type AskNetfilter = <T>(question: (socket: NetlinkSocket) => T) => T;

const ATTEMPTS = 5;

/** Rules change while they are read. Undefined when they never stood still meanwhile, and without nf_tables. */
export function readRuleset(ask: AskNetfilter): Ruleset | undefined {
  const chains = ask((socket) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const generation = currentGeneration(socket);
      if (generation === undefined) return undefined;
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
  const rules = new Map<string, Rule[]>();
  list(socket, nft.NFT_MSG_GETRULE, ruleAttrs, (found, family) => {
    const key = `${family} ${found.table} ${found.chain}`, those = rules.get(key);
    const rule = ruleOf(found);
    if (those === undefined) rules.set(key, [rule]);
    else those.push(rule);
    return [];
  });
  return list(socket, nft.NFT_MSG_GETCHAIN, chainAttrs, (found, number): RuleChain[] => {
    const family = FAMILIES[number];
    if (family === undefined || dormant.has(`${number} ${found.table}`)) return [];
    const { table, name } = found, base = baseOf(found, number);
    return [{ family, table: table!, name: name!, base, rules: rules.get(`${number} ${table} ${name}`) ?? [] }];
  });
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

const FAMILIES: Record<number, RulesFamily | undefined> = {
  [nft.NFPROTO_INET]: "inet",
  [nft.NFPROTO_IPV4]: "ip",
  [nft.NFPROTO_IPV6]: "ip6",
  [nft.NFPROTO_BRIDGE]: "bridge",
  [nft.NFPROTO_NETDEV]: "netdev",
};
const HOOKS: readonly HookName[] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];
const NETDEV_HOOKS: readonly HookName[] = ["ingress", "egress"];

function baseOf({ hook, policy, type }: ReturnType<typeof chainAttrs.decode>, family: number): BaseChain | undefined {
  if (hook?.number === undefined) return undefined;
  return {
    hook: (family === nft.NFPROTO_NETDEV ? NETDEV_HOOKS : HOOKS)[hook.number] ?? "ingress",
    priority: hook.priority! | 0,
    type: type === "nat" || type === "route" ? type : "filter",
    policy: policy === nft.NF_DROP ? "drop" : "accept",
    devices: hook.devices ?? (hook.device === undefined ? [] : [hook.device]),
  };
}

/** Expressions are decoded when a packet comes to the rule. */
function ruleOf({ handle, expressions, userdata }: ReturnType<typeof ruleAttrs.decode>): Rule {
  let decoded: Rule["operations"] | undefined;
  return {
    handle: handle!,
    comment: commentIn(userdata),
    get operations() {
      return decoded ??= expressions === undefined
        ? []
        : (expressionList.read(expressions) as FoundExpression[]).map(operationOf);
    },
  };
}

class SetsOnDemand {
  private readonly read = new Map<string, RuleSet | undefined>();

  constructor(private readonly ask: AskNetfilter) {}

  named(chain: RuleChain, name: string): RuleSet | undefined {
    const key = `${chain.family} ${chain.table} ${name}`;
    if (!this.read.has(key)) this.read.set(key, this.ask((socket) => readSet(socket, chain, name)));
    return this.read.get(key);
  }
}

function readSet(socket: NetlinkSocket, { family, table }: RuleChain, name: string): RuleSet | undefined {
  const number = Number(Object.entries(FAMILIES).find(([, each]) => each === family)![0]);
  const question = { what: `get set ${family} ${table} ${name}`, flags: 0, family: number };
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
    (payload, found) => void found.push(...(elementListAttrs.decode(payload).elements ?? []).map(elementOf)),
  );
  const { flags = 0, keyLength = 0, description } = found;
  return {
    name,
    isInterval: (flags & nft.NFT_SET_INTERVAL) !== 0,
    isChanging: (flags & (nft.NFT_SET_EVAL | nft.NFT_SET_TIMEOUT)) !== 0,
    keyLength,
    parts: (flags & nft.NFT_SET_CONCAT) === 0 ? [] : (description?.parts ?? []).map(({ length }) => length!),
    elements,
  };
}

type FoundElement = NonNullable<ReturnType<typeof elementListAttrs.decode>["elements"]>[number];

function elementOf({ key, keyEnd, data, flags = 0, expiresMs }: FoundElement): SetElement {
  return {
    key: key?.value,
    keyEnd: keyEnd?.value,
    isEnd: (flags & nft.NFT_SET_ELEM_INTERVAL_END) !== 0,
    isTimed: expiresMs !== undefined,
    data: data?.value,
    verdict: verdictOf(data?.verdict),
  };
}
