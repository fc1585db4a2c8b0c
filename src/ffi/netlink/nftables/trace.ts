/**
 * The kernel's own trace of packets, and the table that asks for it (linux/netfilter/nf_tables.h, enum
 * nft_trace_attributes). The table has an owner: it goes when its socket is closed, also of a process that is killed.
 */
import { EINVAL } from "../../errno.ts";
import { type AttrsOf, attrTable, binary, exactText, nest, u32be, u64be } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import type { KernelTransport } from "../transport.ts";
import { receiveFromKernel } from "../transport.ts";
import { eachMessage, NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";
import { loaded } from "./action.ts";
import { commit } from "./batch.ts";
import { equals } from "./compare.ts";
import { type Expression, expression, verdictAttrs } from "./expression.ts";
import { HEADER_BYTES, messageType } from "./message.ts";
import { payload, setTracing, transportProtocol } from "./packet-match.ts";
import { addRule } from "./rule.ts";
import { addBaseChain, addTable, type Table } from "./table.ts";

export class UntraceableError extends Error {}

/** Packets a second, of each rule: whatever else has the same numbers does not fill the queue. */
const MOST_A_SECOND = 20n, AT_ONCE = 20;

const limit = expression(
  "limit",
  attrTable("NFTA_LIMIT", {
    rate: u64be(nft.NFTA_LIMIT_RATE),
    seconds: u64be(nft.NFTA_LIMIT_UNIT),
    burst: u32be(nft.NFTA_LIMIT_BURST),
  }),
);

/** Bytes that a packet has. */
export interface ByteMatch {
  in: "network" | "transport";
  offset: number;
  value: Uint8Array;
}

export interface TraceOrder {
  protocol: number;
  /** A packet that has all the bytes of one of these is traced. */
  packets: readonly (readonly ByteMatch[])[];
  /** Chains of ours that do nothing, so that the trace has them. */
  signs: readonly { hook: number; priority: number; name: string }[];
}

/** Before all others, also before those of who has read that one begins at -1000. */
export const FIRST_SIGN = -2000;

/** Throws where the kernel has no tables with owners. */
export function traceIn(socket: NetlinkSocket, table: Table, { protocol, packets, signs }: TraceOrder): void {
  const owned = { ...addTable(table), flags: NLM_F_CREATE | NLM_F_EXCL };
  const hooks = [nft.NF_INET_PRE_ROUTING, nft.NF_INET_LOCAL_OUT];
  const messages = hooks.flatMap((hook) => {
    const chain = { table, name: `begin${hook}` };
    return [
      addBaseChain(chain, { type: "filter", hook, priority: FIRST_SIGN }),
      ...packets.map((bytes) => addRule(chain, traced(protocol, bytes))),
    ];
  });
  try {
    commit(socket, [
      { ...owned, values: { ...owned.values, flags: nft.NFT_TABLE_F_OWNER } },
      ...messages,
      ...signs.map(({ name, ...rest }) => addBaseChain({ table, name }, { type: "filter", ...rest })),
    ]);
  } catch (error) {
    if (!isNetlinkError(error, EINVAL)) throw error;
    throw new UntraceableError(
      "this kernel has no tables that go with who made them (Linux 5.12), so nothing is traced",
    );
  }
}

function traced(protocol: number, bytes: readonly ByteMatch[]): Expression[] {
  const base = { network: nft.NFT_PAYLOAD_NETWORK_HEADER, transport: nft.NFT_PAYLOAD_TRANSPORT_HEADER };
  return [
    transportProtocol,
    equals(Uint8Array.of(protocol)),
    ...bytes.flatMap(({ in: header, offset, value }) => [
      payload({ into: nft.NFT_REG_1, base: base[header], offset, length: value.length }),
      equals(value),
    ]),
    limit({ rate: MOST_A_SECOND, seconds: 1n, burst: AT_ONCE }),
    loaded(Uint8Array.of(1), nft.NFT_REG_1),
    setTracing,
  ];
}

const traceAttrs = attrTable("NFTA_TRACE", {
  table: exactText(nft.NFTA_TRACE_TABLE),
  chain: exactText(nft.NFTA_TRACE_CHAIN),
  handle: u64be(nft.NFTA_TRACE_RULE_HANDLE),
  verdict: nest(nft.NFTA_TRACE_VERDICT, verdictAttrs),
  id: u32be(nft.NFTA_TRACE_ID),
  network: binary(nft.NFTA_TRACE_NETWORK_HEADER),
  transport: binary(nft.NFTA_TRACE_TRANSPORT_HEADER),
  input: u32be(nft.NFTA_TRACE_IIF),
  output: u32be(nft.NFTA_TRACE_OIF),
  policy: u32be(nft.NFTA_TRACE_POLICY),
});

/** What one chain did with a packet. The first message of a packet in a base chain has the headers. */
export type TraceEvent = AttrsOf<typeof traceAttrs.rows> & { family: number };

/** Others may have the kernel trace as much as they like: then somebody else has his turn in between. */
export const MOST_TRACES_AT_ONCE = 256;

/** What has come, or the first of it. Throws ENOBUFS when some were lost. */
export function tracesIn(events: KernelTransport): TraceEvent[] {
  const found: TraceEvent[] = [];
  while (found.length < MOST_TRACES_AT_ONCE) {
    const bytes = receiveFromKernel(events, false);
    if (bytes === undefined) break;
    eachMessage(bytes, ({ type, payload }) => {
      if (type !== messageType(nft.NFT_MSG_TRACE)) return;
      found.push({ ...traceAttrs.decode(payload.subarray(HEADER_BYTES)), family: payload[0]! });
    });
  }
  return found;
}
