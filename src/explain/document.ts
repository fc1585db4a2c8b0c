/** An explanation for programs: keys that stay, codes of codes.ts. */
import type { Place } from "../net/netfilter/traversal.ts";
import { partyText, protocolText } from "./question.ts";
import { type Answered, makerIn } from "./show.ts";
import type { Remedy } from "./walk/traveller.ts";

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
    rule?: { family: string; table: string; chain: string; handle?: string };
    mend: Remedy[];
  };
  ways: { all: number; stopped: number };
  steps: { direction: "going" | "answer"; what: string; text: string; state: string }[];
}

export function explanationDocument({ question, explanation, reason }: Answered): ExplanationDocument {
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
  };
}

function ruleOf({ chain: { family, table, name }, rule }: Place) {
  return { family, table, chain: name, handle: rule === undefined ? undefined : String(rule.handle) };
}
