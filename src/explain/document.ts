/** An explanation for programs: keys that stay, codes of codes.ts. */
import type { Place } from "../net/netfilter/traversal.ts";
import { partyText, protocolText } from "./question.ts";
import type { LiveProof } from "./live/prove.ts";
import { type Answered, makerIn, sentText } from "./show.ts";
import type { Remedy } from "./walk/traveller.ts";

interface RuleDocument {
  family: string;
  table: string;
  chain: string;
  handle?: string;
}

export interface ExplanationDocument {
  from: string;
  to: string;
  protocol: string;
  verdict: "arrives" | "leaves" | "stops" | "unknown";
  /** What is said first to people. */
  text: string;
  /** Where the packet ends, or what leaves it open; absent when it arrives or leaves. */
  cause?: {
    code: string;
    where: string;
    what: string;
    text: string;
    owner?: string;
    rule?: RuleDocument;
    mend: Remedy[];
  };
  ways: { all: number; stopped: number };
  steps: { direction: "going" | "answer"; what: string; text: string; state: string }[];
  /** What was seen of a real packet, with `--live` or `--watch`. */
  live?: LiveDocument;
}

export interface LiveDocument {
  sent: string;
  seen: {
    direction: "going" | "answer";
    where: string;
    hook: string;
    priority: number;
    verdict: string;
    /** Absent for what only saw it pass. */
    rule?: RuleDocument;
    input?: string;
    output?: string;
  }[];
  agrees: LiveProof["agrees"];
  text: string;
  verdict?: string;
  /** For the report of a contradiction. */
  kernel?: string;
}

export function explanationDocument({ question, explanation, reason, live }: Answered): ExplanationDocument {
  const head = { from: partyText(question.from), to: partyText(question.to), protocol: protocolText(question) };
  if (explanation === undefined) {
    return { ...head, verdict: "unknown", text: reason ?? "", ways: { all: 0, stopped: 0 }, steps: [] };
  }
  const { verdict, end, ways, steps } = explanation, cause = "cause" in end ? end.cause : undefined;
  return {
    ...head,
    verdict,
    text: "cause" in end ? end.cause.text : end.text,
    cause: cause && {
      code: cause.code,
      where: cause.netns.label,
      what: cause.what,
      text: cause.text,
      ...cause.place && { owner: makerIn(cause)?.name, rule: ruleOf(cause.place) },
      mend: [...cause.mend ?? []],
    },
    ways,
    steps: steps.map(({ direction, what, text, state }) => ({ direction, what, text, state })),
    live: live && liveDocument(live),
  };
}

function liveDocument(live: LiveProof): LiveDocument {
  const seen = live.sights.map(({ netns, by, ...rest }) => ({ ...rest, where: netns.label, rule: by && ruleOf(by) }));
  const { agrees, text, verdict, kernel } = live;
  return { sent: sentText(live), seen, agrees, text, verdict, kernel };
}

function ruleOf({ chain: { family, table, name }, rule }: Place): RuleDocument {
  return { family, table, chain: name, handle: rule === undefined ? undefined : String(rule.handle) };
}
