/** The kernel's expressions in the words of net/netfilter/ruleset.ts (linux/netfilter/nf_tables.h). */
import type { Comparison, Operation, PayloadBase, Register, Verdict } from "../../../net/netfilter/ruleset.ts";
import { type AttrsOf, attrTable, type Rows, u32be } from "../attrs.ts";
import * as nft from "../uapi/nf-tables.ts";
import { immediateAttrs, natAttrs } from "./action.ts";
import { bitwiseAttrs, cmpAttrs, lookupAttrs, objrefAttrs, rangeAttrs } from "./compare.ts";
import type { dataAttrs, FoundExpression } from "./expression.ts";
import { matchAttrs, targetAttrs } from "./extension.ts";
import { ctAttrs, fibAttrs, metaAttrs, payloadAttrs } from "./packet-match.ts";

const swapAttrs = attrTable("NFTA_BYTEORDER", {
  from: u32be(nft.NFTA_BYTEORDER_SREG),
  into: u32be(nft.NFTA_BYTEORDER_DREG),
  length: u32be(nft.NFTA_BYTEORDER_LEN),
  size: u32be(nft.NFTA_BYTEORDER_SIZE),
});
const redirectAttrs = attrTable("NFTA_REDIR", {
  port: u32be(nft.NFTA_REDIR_REG_PROTO_MIN),
  lastPort: u32be(nft.NFTA_REDIR_REG_PROTO_MAX),
});
const firstRegister = attrTable("NFTA", { into: u32be(nft.NFTA_NG_DREG) });
const secondRegister = attrTable("NFTA", { into: u32be(nft.NFTA_HASH_DREG) });

type Decoder = (data: Uint8Array) => Operation | undefined;

/** One that has what is not known may do anything. */
export function operationOf({ name, data }: FoundExpression): Operation {
  return decoders[name]?.(data) ?? { does: "something", name };
}

const PAYLOAD_BASES: (PayloadBase | undefined)[] = ["link", "network", "transport", "inner"];
const COMPARISONS: (Comparison | undefined)[] = ["==", "!=", "<", "<=", ">", ">="];

/** Indexes are those of enum nft_meta_keys, and of enum nft_ct_keys. */
// deno-fmt-ignore
const META_KEYS: (string | undefined)[] = [
  "length", "protocol", "priority", "mark", "iif", "oif", "iifname", "oifname", "iiftype", "oiftype", "skuid", "skgid",
  "nftrace", "rtclassid", "secmark", "nfproto", "l4proto",
];
META_KEYS[nft.NFT_META_SDIF] = "sdif";
META_KEYS[nft.NFT_META_SDIFNAME] = "sdifname";
const CT_KEYS = ["state", "direction", "status", "mark"];

const decoders: Record<string, Decoder | undefined> = {
  payload: (data) => {
    const { base = 0, offset = 0, length = 0, into, from } = payloadAttrs.decode(data), name = PAYLOAD_BASES[base];
    if (name === undefined) return undefined;
    if (from !== undefined) return { does: "set payload", base: name, offset, length, from: register(from) };
    return { does: "payload", base: name, offset, length, into: register(into!) };
  },
  meta: (data) => {
    const { key = 0, into, from } = metaAttrs.decode(data), name = META_KEYS[key] ?? `key ${key}`;
    if (from !== undefined) return { does: "set meta", key: name, from: register(from) };
    return { does: "meta", key: name, into: register(into!) };
  },
  ct: (data) => {
    const { key = 0, into, from } = ctAttrs.decode(data), name = CT_KEYS[key] ?? `key ${key}`;
    if (from !== undefined) return { does: "set ct", key: name, from: register(from) };
    return { does: "ct", key: name, into: register(into!) };
  },
  fib: (data) => {
    const { into, result, flags = 0 } = fibAttrs.decode(data), isWhether = (flags & nft.NFTA_FIB_F_PRESENT) !== 0;
    const ends = nft.NFTA_FIB_F_SADDR | nft.NFTA_FIB_F_DADDR;
    // Without routing rules of others, a mark changes no route.
    const rest = flags & ~(ends | nft.NFTA_FIB_F_MARK | nft.NFTA_FIB_F_PRESENT);
    const asks = ([undefined, isWhether ? "oif exists" : "oif", "oifname", "type"] as const)[result ?? 0];
    if (asks === undefined) return undefined;
    const of = (flags & nft.NFTA_FIB_F_SADDR) !== 0 ? "saddr" : "daddr";
    const at = rest === 0 ? undefined : rest === nft.NFTA_FIB_F_IIF ? "iif" : "elsewhere";
    return { does: "fib", asks, of, at, into: register(into!) };
  },
  cmp: (data) => {
    const { register: from, operation = 0, data: compared } = cmpAttrs.decode(data), how = COMPARISONS[operation];
    if (how === undefined || compared?.value === undefined) return undefined;
    return { does: "compare", register: register(from!), how, value: compared.value };
  },
  range: (data) => {
    const { register: from, operation, first, last } = rangeAttrs.decode(data);
    if (first?.value === undefined || last?.value === undefined) return undefined;
    const isInside = operation !== nft.NFT_RANGE_NEQ;
    return { does: "range", register: register(from!), isInside, first: first.value, last: last.value };
  },
  bitwise: (data) => {
    const { from, into, mask, xor, operation = 0 } = bitwiseAttrs.decode(data);
    if (operation !== 0 || mask?.value === undefined || xor?.value === undefined) {
      return unknownValue("bitwise", into);
    }
    return { does: "mask", from: register(from!), into: register(into!), mask: mask.value, xor: xor.value };
  },
  byteorder: (data) => {
    const { from, into, length = 0, size = 1 } = swapAttrs.decode(data);
    return { does: "swap", from: register(from!), into: register(into!), length, size };
  },
  lookup: (data) => {
    const { register: from, into, set, flags = 0 } = lookupAttrs.decode(data);
    return {
      does: "lookup",
      register: register(from!),
      set: set!,
      isInverted: (flags & nft.NFT_LOOKUP_F_INV) !== 0,
      into: into === undefined ? undefined : into === nft.NFT_REG_VERDICT ? "verdict" : register(into),
    };
  },
  immediate: (data) => {
    const { into, data: put } = immediateAttrs.decode(data);
    if (put?.value !== undefined) return { does: "put", into: register(into!), value: put.value };
    const verdict = verdictOf(put?.verdict);
    return verdict && { does: "verdict", verdict };
  },
  nat: (data) => {
    const { type, address, lastAddress = address, port, lastPort = port } = natAttrs.decode(data);
    return {
      does: "nat",
      changes: type === nft.NFT_NAT_SNAT ? "source" : "destination",
      address: address === undefined ? undefined : register(address),
      port: port === undefined ? undefined : register(port),
      isFirm: address === lastAddress && port === lastPort,
    };
  },
  masq: () => ({ does: "masquerade" }),
  redir: (data) => {
    const { port, lastPort = port } = redirectAttrs.decode(data);
    return { does: "redirect", port: port === undefined ? undefined : register(port), isFirm: port === lastPort };
  },
  reject: () => ({ does: "reject" }),
  notrack: () => ({ does: "notrack" }),
  queue: () => ({ does: "verdict", verdict: { kind: "queue" } }),
  match: (data) => ({ does: "match", ...extension(matchAttrs.decode(data)) }),
  target: (data) => ({ does: "target", ...extension(targetAttrs.decode(data)) }),
  objref: (data) => {
    const { type, register: from, map } = objrefAttrs.decode(data);
    if (map !== undefined) return { does: "lookup", register: register(from!), set: map, isInverted: false };
    return type === nft.NFT_OBJECT_COUNTER ? { does: "nothing", name: "counter" } : { does: "guess", name: "object" };
  },
  counter: nothing("counter"),
  log: nothing("log"),
  last: nothing("last"),
  dup: nothing("dup"),
  limit: guess("limit"),
  quota: guess("quota"),
  connlimit: guess("connlimit"),
  dynset: guess("set update"),
  flow_offload: guess("flow add"),
  numgen: guess("numgen", firstRegister),
  rt: guess("rt", firstRegister),
  osf: guess("osf", firstRegister),
  xfrm: guess("ipsec", firstRegister),
  exthdr: guess("exthdr", firstRegister),
  hash: guess("hash", secondRegister),
  socket: guess("socket", secondRegister),
};

function extension({ name = "", revision = 0, info = new Uint8Array(0) }: ReturnType<typeof matchAttrs.decode>) {
  return { name, revision, info: new DataView(info.buffer, info.byteOffset, info.byteLength) };
}

function nothing(name: string): Decoder {
  return () => ({ does: "nothing", name });
}

/** It may end the rule, and what it loads is unknown. */
function guess<R extends Rows & { into: Rows[string] }>(
  name: string,
  table?: ReturnType<typeof attrTable<R>>,
): Decoder {
  return (data) => {
    const { into } = (table?.decode(data) ?? {}) as AttrsOf<R> & { into?: number };
    return unknownValue(name, into);
  };
}

function unknownValue(name: string, into: number | undefined): Operation {
  return { does: "guess", name, into: into === undefined ? undefined : register(into) };
}

/** enum nft_registers: four of 16 bytes, also addressable as sixteen of 4 bytes. */
function register(number: number): Register {
  return number >= nft.NFT_REG32_00 ? (number - nft.NFT_REG32_00) * 4 : (number - nft.NFT_REG_1) * 16;
}

type FoundVerdict = NonNullable<ReturnType<typeof dataAttrs.decode>["verdict"]>;

export function verdictOf(found: FoundVerdict | undefined): Verdict | undefined {
  const code = found?.code;
  switch (code) {
    case nft.NF_ACCEPT:
      return { kind: "accept" };
    case nft.NF_DROP:
      return { kind: "drop" };
    case nft.NFT_RETURN:
      return { kind: "return" };
    case nft.NFT_CONTINUE:
      return { kind: "continue" };
    case nft.NFT_JUMP:
      return { kind: "jump", chain: found!.chain! };
    case nft.NFT_GOTO:
      return { kind: "goto", chain: found!.chain! };
    default:
      // The number of the queue is in its upper half.
      return code !== undefined && (code & 0xff) === nft.NF_QUEUE ? { kind: "queue" } : undefined;
  }
}
