/** What the kernel's trace tells of a packet, base chain by base chain, in the words of the walk. */
import type { Place } from "../../net/netfilter/traversal.ts";
import { HOOK_NAMES, type HookName } from "../../net/netfilter/ruleset.ts";
import { verdictOf } from "../../ffi/netlink/nftables/decode.ts";
import { familyNames } from "../../ffi/netlink/nftables/message.ts";
import { type ByteMatch, FIRST_SIGN, type TraceEvent } from "../../ffi/netlink/nftables/trace.ts";
import { NF_DROP } from "../../ffi/netlink/uapi/nf-tables.ts";
import { TCP } from "../../net/ip-protocol.ts";
import { linkAt } from "../facts.ts";
import type { Reading } from "../reading.ts";

export interface Sight {
  netns: Reading;
  direction: "going" | "answer";
  hook: HookName;
  priority: number;
  verdict: "accept" | "drop" | "queue" | "unknown";
  /** Undefined for chains of ours, which only see it pass. */
  by?: Place;
  input?: string;
  output?: string;
  /** It ends a connection of TCP. */
  isReset?: true;
}

export function signName(hook: number, priority: number): string {
  return `sign${hook}.${priority}`;
}

export interface Headers {
  network: Uint8Array;
  transport: Uint8Array;
}

export function hasAll(headers: Headers, bytes: readonly ByteMatch[]): boolean {
  return bytes.every(({ in: header, offset, value }) =>
    value.every((byte, at) => headers[header][offset + at] === byte)
  );
}

/** Joins the messages of one namespace. Their number is of a moment: the kernel uses it again. */
export class Sightings {
  private readonly begun = new Map<number, TraceEvent & Headers & Pick<Sight, "direction">>();

  constructor(
    private readonly netns: Reading,
    private readonly table: string,
    private readonly directionOf: (headers: Headers) => Sight["direction"] | undefined,
  ) {}

  take(event: TraceEvent): Sight[] {
    const id = event.id!, { network, transport } = event;
    if (network !== undefined && transport !== undefined) {
      this.begun.delete(id);
      const direction = this.directionOf({ network, transport });
      // Others have packets of their own traced.
      if (direction !== undefined) this.begun.set(id, { ...event, network, transport, direction });
    }
    const first = this.begun.get(id), verdict = finalVerdict(event);
    if (first === undefined || verdict === undefined) return [];
    this.begun.delete(id);
    const { direction } = first, base = this.placeOf(first)?.chain.base ?? this.sign(first);
    if (base === undefined) return [];
    const { hook, priority } = base, { netns } = this;
    const [input, output] = [first.input, first.output].map((index) =>
      index && linkAt(netns, index)?.name || undefined
    );
    return [{
      netns,
      direction,
      hook,
      priority,
      verdict,
      by: this.placeOf(event),
      input,
      output,
      ...isReset(first) && { isReset: true },
    }];
  }

  private placeOf({ family, table, chain: name, handle }: TraceEvent): Place | undefined {
    const chain = this.netns.rules()?.chains.find((each) =>
      each.family === familyNames[family] && each.table === table && each.name === name && !each.isLegacy
    );
    return chain && { chain, rule: chain.rules.find((rule) => rule.handle === handle) };
  }

  private sign({ table, chain }: TraceEvent): { hook: HookName; priority: number } | undefined {
    const [, hook, priority = FIRST_SIGN] = /^(?:begin|sign)(\d)(?:\.(-?\d+))?$/.exec(chain ?? "") ?? [];
    if (table !== this.table || hook === undefined) return undefined;
    return { hook: HOOK_NAMES[Number(hook)]!, priority: Number(priority) };
  }
}

function isReset({ network, transport }: Headers): boolean {
  const protocol = network[0]! >> 4 === 4 ? network[9] : network[6], FLAGS_AT = 13, RST = 0x4;
  return protocol === TCP && (transport[FLAGS_AT]! & RST) !== 0;
}

/** Undefined where the packet goes on in the chain, or in another one that it jumps to. */
function finalVerdict({ policy, verdict }: TraceEvent): Sight["verdict"] | undefined {
  if (policy !== undefined) return policy === NF_DROP ? "drop" : "accept";
  const kind = verdictOf(verdict)?.kind;
  if (kind === undefined) return "unknown";
  return kind === "accept" || kind === "drop" || kind === "queue" ? kind : undefined;
}
