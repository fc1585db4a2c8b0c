/** An explanation for programs: keys that stay, codes of codes.ts. */
import type { Place } from "../net/netfilter/traversal.ts";
import { partyText, protocolText } from "./question.ts";
import type { ExplanationDocument } from "./explanation.schema.ts";
import type { LiveProof } from "./live/prove.ts";
import { sentText } from "./live/words.ts";
import { type Answered, makerIn } from "./show.ts";

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

function liveDocument(live: LiveProof): ExplanationDocument["live"] {
  const seen = live.sights.map(({ netns, direction, hook, priority, verdict, by, input, output }) => {
    return { direction, where: netns.label, hook, priority, verdict, rule: by && ruleOf(by), input, output };
  });
  const { agrees, text, verdict, kernel } = live;
  return { sent: sentText(live), seen, agrees, text, verdict, kernel };
}

function ruleOf({ chain: { family, table, name }, rule }: Place) {
  return { family, table, chain: name, handle: rule === undefined ? undefined : String(rule.handle) };
}
